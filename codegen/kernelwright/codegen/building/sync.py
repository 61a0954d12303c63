"""Keeps a folder that holds exactly the generated files, without touching unchanged ones."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from kernelwright.codegen.building.store import write_atomically
from kernelwright.codegen.violations import SpecError
from kernelwright.files.strict_json import read_json

RECORD = ".kernelwright-files.json"
"""The file that lists what we wrote, so that nothing else is ever removed."""


def sync_folder(folder: Path, files: Mapping[str, str]) -> tuple[int, int]:
    """Write ``files`` (text by relative path) where they differ and remove files of an earlier call that are gone.

    Returns how many were written and removed. SpecError if the record of earlier files is damaged.
    """
    before = _recorded(folder)
    stale = sorted(before - set(files))
    write_atomically(folder / RECORD, _record(before | set(files)))  # a crash from here on leaves nothing unrecorded
    written = 0
    for path, text in files.items():
        target = folder / path
        if not target.is_file() or target.read_bytes() != text.encode():
            write_atomically(target, text.encode())
            written += 1
    for path in stale:
        (folder / path).unlink(missing_ok=True)
    write_atomically(folder / RECORD, _record(set(files)))
    return written, len(stale)


def _recorded(folder: Path) -> set[str]:
    record = folder / RECORD
    if not record.exists():
        return set()
    try:
        names = read_json(record)["files"]
        if all(not Path(name).is_absolute() and ".." not in Path(name).parts for name in names):
            return set(names)
    except (ValueError, KeyError, TypeError):
        pass
    raise SpecError(f"{record} is damaged; remove the folder and render again")


def _record(names: set[str]) -> bytes:
    return (json.dumps({"files": sorted(names)}, indent=1) + "\n").encode()
