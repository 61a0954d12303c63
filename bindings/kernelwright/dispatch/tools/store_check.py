"""Find damage in the files that builds keep: check stores, caches and installed toolchains against their digests.

Builds compare their inputs with digests, but not each of the thousands of files of a toolchain. The store consists of
LMDB environments, one for each first digit of a digest, and a folder of large files. A separate process
(``lmdb_shards``) reads the environments, because a damaged one can kill the process that maps it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernelwright.dispatch.tools.folder_check import Checked, check_folder, differing
from kernelwright.dispatch.tools.kernel_objects import compare_objects
from kernelwright.dispatch.tools.lmdb_shards import MAX_TEXT, described

_MOST_NAMED = 10  # files that are named individually
_READER = Path(__file__).with_name("lmdb_shards.py")


@dataclass
class Found:
    """Numbers of files and kernels compared, and one sentence per problem.

    :ivar unknown: number of libraries without a statement, which are not checked.
    :ivar described: manifests and statements of libraries among the files, see ``lmdb_shards.described``.
    """

    files: int = 0
    problems: list[str] = field(default_factory=list)
    kernels: int = 0
    unknown: int = 0
    described: list[Mapping[str, Any]] = field(default_factory=list)


def check_folders(folders: Sequence[Path], findings: Found) -> None:
    """Compare the files of Pants stores, caches and library folders. No build may be running.

    Across all of them, one identity must have one object per toolchain and state of the sources, and one command one
    result.
    """
    checked = Checked()
    for folder in folders:
        if (folder / "files").is_dir() or (folder / "immutable/files").is_dir():
            check_store(folder, findings)
        else:
            check_folder(folder, checked)
    findings.files += checked.files
    if checked.damaged:
        findings.problems.append(
            f"{_listed(checked.damaged)} {'are' if len(checked.damaged) > 1 else 'is'} not what was built: a result of "
            "a cache is made again when it is needed; build or copy a library again"
        )
    findings.problems += differing(checked.results)
    compared = compare_objects([*findings.described, *checked.described])
    findings.kernels, findings.unknown = compared.kernels, compared.unknown
    findings.problems += compared.problems


def check_store(store: Path, findings: Found) -> None:
    """Compare the contents of a Pants store with their digests."""
    shards = [data for kind in ("files", "directories") for data in sorted((store / kind).glob("*/data.mdb"))]
    if shards and find_spec("lmdb") is None:
        findings.problems.append(f"reading {store} needs the package lmdb; pip install 'kernelwright[doctor]'")
        shards = []
    damaged = _check_shards(shards, findings)
    for path in sorted((store / "immutable/files").glob("??/*")):
        findings.files += 1
        if _sha256(path).hex() != path.name:
            damaged.append(str(path))
        elif path.stat().st_size <= MAX_TEXT and (entry := described(path.read_bytes())) is not None:
            findings.described.append(entry)
    if damaged:
        findings.problems.append(
            f"the local store is damaged: {_listed(damaged)}; stop Pants, remove {store}, build again"
        )


def check_distributions(names: Sequence[str], findings: Found) -> None:
    """Compare the files of those distributions that are installed here with pip's records."""
    for name in names:
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            continue
        wrong = []
        for file in distribution.files or ():
            if file.hash is None or file.hash.mode != "sha256":
                continue
            findings.files += 1
            path = Path(str(file.locate()))
            digest = _sha256(path) if path.is_file() else b""
            if base64.urlsafe_b64encode(digest).decode().rstrip("=") != file.hash.value:
                wrong.append(str(path))
        if wrong:
            findings.problems.append(f"{name} is damaged: {_listed(wrong)}; pip install --force-reinstall {name}")


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _sha256(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _check_shards(shards: Sequence[Path], findings: Found) -> list[str]:
    """Digests of damaged entries and names of unreadable environments."""
    damaged, left = [], list(shards)
    while left:
        command = [sys.executable, str(_READER), *map(str, left)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        for line in done.stdout.splitlines():
            data, shard = left.pop(0), json.loads(line)
            findings.files += shard["files"]
            findings.described += shard["described"]
            damaged += [f"{digest} in {data}" for digest in shard["damaged"]]
            if shard["error"]:
                damaged.append(f"pages of {data} ({shard['error']})")
        if done.returncode:  # the next environment killed the reader
            why = f"signal {-done.returncode}" if done.returncode < 0 else done.stderr.strip().rpartition("\n")[2]
            damaged.append(f"pages of {left.pop(0)} (its reader ended: {why})")
    return damaged
