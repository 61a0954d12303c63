"""Metadata of device functions at the end of the compiler's assembly."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

_BLOCK = re.compile(r"^\s*\.amdgpu_metadata$(.*)^\s*\.end_amdgpu_metadata$", re.MULTILINE | re.DOTALL)


class ReportError(ValueError):
    """An assembly without the expected device functions."""


def kernels_of(text: str, helpers: Sequence[str]) -> dict[str, str]:
    """The metadata of the relevant device functions by symbol: those whose symbols contain none of ``helpers``."""
    block = _BLOCK.search(text)
    if block is None:
        raise ReportError("no .amdgpu_metadata in the assembly; compile with -S for an AMD GPU")
    return {
        symbol: entry for symbol, entry in _entries(block.group(1)) if not any(helper in symbol for helper in helpers)
    }


def number(metadata: str, key: str, default: int | None = None) -> int:
    """Return a number of a function's metadata. ReportError if it is missing and has no ``default``."""
    match = re.search(rf"^[\s-]*\.{key}:\s*(\d+)$", metadata, re.MULTILINE)
    if match is not None:
        return int(match.group(1))
    if default is None:
        raise ReportError(f"the metadata of the assembly has no .{key}")
    return default


def _entries(metadata: str) -> Iterator[tuple[str, str]]:
    # Kernels are the entries of one list; only their first lines start with a dash at this depth.
    for entry in re.split(r"^  - ", metadata, flags=re.MULTILINE)[1:]:
        for symbol in re.findall(r"^\s*\.symbol:\s*(\S+)", entry, re.MULTILINE):
            yield symbol, entry
