"""Check that one identity has one object, from the manifests in a store or below a folder.

A kernel's object may vary with its toolchain and with any source, and with nothing else. The inputs of a library are in
the statement beside its manifest, which every build writes; libraries without one are not checked.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Compared:
    """``kernels``: number of kernels compared, each once per toolchain and sources.

    ``libraries`` is the number of manifests, ``unknown`` the number of those without a statement. ``problems`` has a
    sentence for each kernel with several objects.
    """

    kernels: int
    libraries: int
    unknown: int
    problems: tuple[str, ...]


def compare_objects(entries: Iterable[Mapping[str, Any]]) -> Compared:
    """Compare the manifests and statements that :func:`kernelwright.dispatch.tools.lmdb_shards.described` read."""
    listed = list(entries)
    made_of = {entry["manifest"]: entry["made_of"] for entry in listed if "made_of" in entry}
    manifests = {entry["manifest"]: entry for entry in listed if "kernels" in entry}
    objects: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for digest, manifest in manifests.items():
        if digest in made_of:
            for identity, name, sha256 in manifest["kernels"]:
                objects[identity, manifest["toolchains"], made_of[digest]][sha256] = name
    problems = tuple(
        f"kernel {next(iter(forms.values()))} (identity {identity}) has {len(forms)} objects of one toolchain and the "
        f"same sources: {', '.join(sorted(forms))}; please report it: a compile gave other bytes than the one before"
        for (identity, _, _), forms in sorted(objects.items())
        if len(forms) > 1
    )
    return Compared(len(objects), len(manifests), len(set(manifests) - set(made_of)), problems)
