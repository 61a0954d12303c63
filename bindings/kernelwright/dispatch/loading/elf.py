"""Detect truncated shared libraries: the dynamic linker would map one and the process then die of a bus error.

Every load runs this on the user's machine, where NumPy is the only requirement, so it does not use pyelftools.
"""

from __future__ import annotations

import struct
from pathlib import Path

_PT_LOAD = 1


def why_not_loadable(path: Path) -> str:
    """Why ``path`` is not a complete 64-bit ELF file, or ``""``.

    Checks the header and that every loadable segment lies inside the file (System V ABI, chapters 4 and 5).
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:4] != b"\x7fELF":
            return "it is no ELF file"
        if header[4] != 2 or header[5] != 1:
            return "it is no 64-bit little-endian ELF file"
        offset, entry_size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
        if entry_size < 56 or offset + entry_size * count > size:
            return f"it is truncated: its program headers end behind its {size} bytes"
        file.seek(offset)
        table = file.read(entry_size * count)
    for index in range(count):
        kind, _, start, _, _, length = struct.unpack_from("<IIQQQQ", table, index * entry_size)
        if kind == _PT_LOAD and start + length > size:
            return f"it is truncated: a segment ends at byte {start + length} of {size}"
    return ""
