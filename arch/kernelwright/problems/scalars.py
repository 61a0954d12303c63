"""Numbers in the fields of problems, checked before they become C values."""

from __future__ import annotations

from numbers import Complex, Real
from typing import Any

from kernelwright.problems.errors import ProblemError


def real(field: str, value: Any) -> float:
    """A factor such as ``alpha`` as a float. ProblemError for text, complex numbers and anything not a number."""
    if type(value) is float:
        return value
    no_number = isinstance(value, str | bytes | bytearray) or (
        isinstance(value, Complex) and not isinstance(value, Real)
    )
    if not no_number:
        try:
            return float(value)
        except OverflowError:
            raise ProblemError(f"{field} is too large; allowed: a real number of 64 bits") from None
        except (TypeError, ValueError):
            pass
    raise ProblemError(f"{field} is {value!r}; allowed: a real number")


def integer(field: str, value: Any, least: int | None, most: int = 2**63 - 1) -> int:
    """A count such as ``m`` as a 64-bit int of at least ``least``; ``most`` is the limit of the C struct's field.

    ProblemError otherwise.
    """
    try:
        if isinstance(value, bool):
            raise AttributeError
        number = value.__index__()
    except (AttributeError, TypeError):
        raise ProblemError(f"{field} is {value!r}; allowed: an integer") from None
    if least is not None and number < least:
        raise ProblemError(f"{field} is {number}; allowed: {least} or more")
    if number > most:
        raise ProblemError(f"{field} is {number}; allowed: at most {most}")
    if number < -(2**63):
        raise ProblemError(f"{field} is {number}; allowed: a 64-bit integer")
    return int(number)
