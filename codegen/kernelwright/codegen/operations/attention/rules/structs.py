"""What rules read of the C ABI's structs, and the sets that traits print."""

from __future__ import annotations

from kernelwright.codegen.c_names import data_class
from kernelwright.problems.attention.description import Append, Problem, Strides, Traits

__all__ = ["BOTH", "Append", "Problem", "Strides", "Traits", "flag", "only"]

data_class(Append, Problem, Strides, Traits)

BOTH = frozenset({False, True})


def flag(has: bool) -> frozenset[bool]:
    """A kernel that has something and also serves problems that lack it; or that lacks it."""
    return BOTH if has else frozenset({False})


def only(value: bool) -> frozenset[bool]:
    """A kernel that serves problems of one kind."""
    return frozenset({value})
