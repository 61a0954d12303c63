"""What ``Dispatcher.decode`` and ``Dispatcher.prefill`` share: attention over caches of K and V."""

from __future__ import annotations

from typing import Any, NamedTuple

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.calls import AttentionCalls
from kernelwright.dispatch.operations.attention.from_arrays import AttentionOptions

Window = tuple[int, int] | None


class Queries(NamedTuple):
    """Arrays with a row for each query, and where they lie; see :meth:`Dispatcher.prefill`."""

    q: Any
    out: Any
    lse: Any
    layout: str
    dtype: str
    cu_seqlens: Any = None
    longest: int | None = None


class Cache(NamedTuple):
    """Keys, values and what finds them; see :meth:`Dispatcher.decode`."""

    k: Any
    v: Any
    seqlens: Any
    longest: int | None
    layout: str | None
    page_table: Any
    page_indptr: Any
    last_page_lengths: Any


class Scores(NamedTuple):
    """What becomes of Q Kᵀ; see :meth:`Dispatcher.attention`."""

    mask: str
    window: Window
    scale: float | None
    alibi_slopes: Any
    soft_cap: float
    sinks: Any
    descale: tuple[Any, Any, Any] | None
    qscale: str
    scale_o: Any


def cached_attention(
    calls: AttentionCalls,
    queries: Queries,
    cache: Cache,
    scores: Scores,
    num_splits: int,
    stream: int | None,
    own_workspace: bool,
) -> Any:
    """O, or ``(O, LSE)``."""
    options = AttentionOptions(
        "forward",
        layout=queries.layout,
        cache_layout=cache.layout,
        mask=scores.mask,
        window=scores.window,
        scale=scores.scale,
        soft_cap=scores.soft_cap,
        lse=wants(queries.lse),
        max_seqlen_q=queries.longest,
        max_seqlen_k=cache.longest,
        alibi=scores.alibi_slopes is not None,
        dtype=queries.dtype,
        qscale="none" if scores.descale is None else scores.qscale,
        num_splits=num_splits,
    )
    operands = {
        "q": queries.q,
        "k": cache.k,
        "v": cache.v,
        "o": queries.out,
        "lse": given_array(queries.lse),
        "sinks": scores.sinks,
        "bias": scores.alibi_slopes,
        "cu_seqlens_q": queries.cu_seqlens,
        "seqlens_k": cache.seqlens,
        "page_table": cache.page_table,
        "page_indptr": cache.page_indptr,
        "last_page_lengths": cache.last_page_lengths,
        "scale_o": scores.scale_o,
        **descales(scores.descale),
    }
    return results(calls.run(operands, options, stream, own_workspace=own_workspace), options)


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


def results(found: dict[str, Any], options: AttentionOptions) -> Any:
    """O, and LSE where it is wanted."""
    return (found["o"], found["lse"]) if options.lse else found["o"]


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
