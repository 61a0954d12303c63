"""Find damage in library folders and in caches of the JIT and ``kernelwright build``: check files against digests.

A cache holds the outputs of a command in ``actions/KEY``, where KEY is the sha256 of the command, its environment and
the contents of its inputs, toolchains and headers, and their digests in ``__sha256.json``; it holds texts by their
sha256 in ``texts``. A library lies beside its manifest, in a cache or elsewhere.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelwright.dispatch.tools.lmdb_shards import MAX_TEXT, described
from kernelwright.files.strict_json import read_json

_SEALED = "__sha256.json"
_DIGEST = re.compile("[0-9a-f]{64}")

Results = dict[tuple[str, str], dict[str, Path]]
"""Key of a command and path of an output → its digests in the caches, each with a location."""


@dataclass
class Checked:
    """Findings below folders.

    :ivar damaged: files of caches and libraries that do not match their digests.
    :ivar described: see ``lmdb_shards.described``.
    """

    files: int = 0
    damaged: list[str] = field(default_factory=list)
    described: list[Mapping[str, Any]] = field(default_factory=list)
    results: Results = field(default_factory=lambda: defaultdict(dict))


def check_folder(folder: Path, checked: Checked) -> None:
    """Compare every result, text and library below a folder, except links. No build may be running."""
    for name, below, files in os.walk(folder):
        here = Path(name)
        if _SEALED in files:
            below.clear()
            _check_result(here, checked)
        elif here.name == "texts":
            _check_texts(here, [file for file in files if _DIGEST.fullmatch(file)], checked)
        for file in sorted({"manifest.json", "provenance.json"}.intersection(files)):
            _check_library(here / file, checked)


def differing(results: Results) -> Iterator[str]:
    """A sentence for each output that a command, with the same inputs and toolchain, produced in two versions."""
    for (key, output), forms in sorted(results.items()):
        if len(forms) > 1:
            places = ", ".join(f"{digest} in {place}" for digest, place in sorted(forms.items()))
            yield (
                f"{output} has {len(forms)} forms though command, inputs and toolchains are the same (key {key}): "
                f"{places}; please report it: a command gave other bytes than the one before"
            )


def _check_result(entry: Path, checked: Checked) -> None:
    try:
        outputs = dict(read_json(entry / _SEALED))
    except (OSError, ValueError, TypeError):
        checked.damaged.append(str(entry / _SEALED))
        return
    for output, digest in outputs.items():
        checked.files += 1
        if _sha256(entry / output) != digest:
            checked.damaged.append(str(entry / output))
        elif _DIGEST.fullmatch(entry.name):
            checked.results[entry.name, output].setdefault(digest, entry)


def _check_texts(folder: Path, names: list[str], checked: Checked) -> None:
    for name in sorted(names):
        checked.files += 1
        if _sha256(folder / name) != name:
            checked.damaged.append(str(folder / name))


def _check_library(path: Path, checked: Checked) -> None:
    """Check a manifest, with the library that it names, or a statement."""
    try:
        data = path.read_bytes() if path.stat().st_size <= MAX_TEXT else b""
    except OSError:
        return
    entry = described(data)
    if entry is None:
        return
    checked.described.append(entry)
    if "kernels" in entry:
        library = path.parent / os.path.basename(str(entry["library"]))
        checked.files += 1
        if _sha256(library) != entry["sha256"]:
            checked.damaged.append(str(library))


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""  # missing, or not a file
