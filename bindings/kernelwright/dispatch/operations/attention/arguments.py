"""Meaning of attention's arguments: windows, results that are requested or given, scale factors."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.from_arrays import AttentionOptions
from kernelwright.problems.literals import AttentionMask

Window = tuple[int, int] | None


def pair(window: Window) -> Window:
    """Turn lists into tuples, since options are cache keys. Raises ArrayError for anything but two numbers or None."""
    if window is None:
        return None
    try:
        left, right = window
    except (TypeError, ValueError):
        raise ArrayError(f"window is {window!r}; allowed: (left, right), keys on each side, -1 for all") from None
    return left, right


def wants(result: Any) -> bool:
    """Whether a caller requested a result or gave an array for it."""
    return result is not False and result is not None


def given_array(result: Any) -> Any:
    """The array that a caller gave for a result; None if it is only requested, or not wanted."""
    return None if result is True or result is False else result


def results(outputs: dict[str, Any], options: AttentionOptions) -> Any:
    """Return O, with LSE if it is wanted."""
    return (outputs["o"], outputs["lse"]) if options.lse else outputs["o"]


def descales(descale: tuple[Any, Any, Any] | None) -> dict[str, Any]:
    """Scale factors of Q, K and V by operand name. Raises ArrayError for anything but three arrays or None."""
    if descale is not None and (not isinstance(descale, tuple | list) or len(descale) != 3):
        raise ArrayError(f"descale is {descale!r}; allowed: three arrays, the factors of q, k and v")
    return dict(zip(("descale_q", "descale_k", "descale_v"), descale or (None, None, None), strict=True))


def last_keys(q: Any, layout: str, window: Window) -> tuple[AttentionMask, Window]:
    """Mask and window of queries that stand at the last keys; a single query without a window needs no mask."""
    shape = getattr(q, "shape", ())
    single = len(shape) == 4 and shape[1 if layout == "bshd" else 2] == 1
    return ("none", None) if single and window is None else ("bottom_right", pair(window))
