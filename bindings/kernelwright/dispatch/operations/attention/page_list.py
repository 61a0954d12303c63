"""Check page lists against ``page_indptr`` if the host can read it: the C ABI states no length of a list."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from kernelwright.dispatch.arrays.guards import Addresses, Guard, Operands
from kernelwright.dispatch.core.errors import ArrayError


class PageList(NamedTuple):
    """Position of a plan's page list among its operands.

    :ivar table: index of the operand ``page_table``.
    :ivar indptr: index of the operand ``page_indptr``, which has ``places`` entries.
    """

    table: int
    indptr: int
    places: int

    def used(self, address: int) -> int:
        """Number of entries that ``page_indptr``, at an address in host memory, requires of a list."""
        used: int = max((ctypes.c_int32 * self.places).from_address(address))
        return used

    def check(self, address: int, entries: int) -> None:
        """Raise ArrayError if ``page_indptr`` exceeds a list of this many entries."""
        used = self.used(address)
        if used > entries:
            raise ArrayError(f"page_indptr goes to {used}; page_table has {entries} pages; allowed: up to {entries}")


class PageListGuard:
    """A guard of checked arrays that also checks their page list, whose values may have changed."""

    __slots__ = ("_entries", "_guard", "_list")

    def __init__(self, guard: Guard, of: PageList, entries: int) -> None:
        """``guard`` compares metadata, so ``page_table`` always has this many entries."""
        self._guard = guard
        self._list = of
        self._entries = entries

    def addresses(self, operands: Operands, keyed: bool = False) -> Addresses | None:
        """See :class:`Guard`; None for a list that is too short, which the check then reports."""
        pointers = self._guard.addresses(operands, keyed)
        if pointers is None or self._list.used(pointers[self._list.indptr]) > self._entries:
            return None
        return pointers
