"""What arguments of attention's calls mean: windows, results that may be asked for or given, factors."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.from_arrays import AttentionOptions

Window = tuple[int, int] | None


def pair(window: Window) -> Window:
    """Lists as tuples, since options are keys of caches; ArrayError for anything but two numbers or None."""
    if window is None:
        return None
    try:
        left, right = window
    except (TypeError, ValueError):
        raise ArrayError(f"window is {window!r}; allowed: (left, right), keys on each side, -1 for all") from None
    return left, right


def wants(result: Any) -> bool:
    """Whether a caller asked for a result or gave an array for it."""
    return result is not False and result is not None


def given_array(result: Any) -> Any:
    """The array that a caller gave for a result, None where it is asked for or not wanted."""
    return None if result is True or result is False else result


def results(outputs: dict[str, Any], options: AttentionOptions) -> Any:
    """O, and LSE where it is wanted."""
    return (outputs["o"], outputs["lse"]) if options.lse else outputs["o"]


def descales(descale: tuple[Any, Any, Any] | None) -> dict[str, Any]:
    """The factors of Q, K and V by their names as operands. ArrayError for anything but three arrays or None."""
    if descale is not None and (not isinstance(descale, tuple | list) or len(descale) != 3):
        raise ArrayError(f"descale is {descale!r}; allowed: three arrays, the factors of q, k and v")
    return dict(zip(("descale_q", "descale_k", "descale_v"), descale or (None, None, None), strict=True))


def last_keys(q: Any, layout: str, window: Window) -> tuple[str, Window]:
    """Mask and window of queries that stand at the last keys; a single one without window needs no mask."""
    shape = getattr(q, "shape", ())
    single = len(shape) == 4 and shape[1 if layout == "bshd" else 2] == 1
    return ("none", None) if single and window is None else ("bottom_right", pair(window))
