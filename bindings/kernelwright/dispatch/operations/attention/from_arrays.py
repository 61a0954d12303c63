"""Build attention problems from arrays and options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.operand import memory_strides, sizes
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.files.proposals import closest
from kernelwright.problems.attention.shapes import LAYOUTS
from kernelwright.problems.literals import AttentionLayout, AttentionMask, QScale

Views = Mapping[str, ArrayView]


class AttentionOptions(NamedTuple):
    """Options of attention that its arrays do not express; see :meth:`Dispatcher.attention`."""

    direction: str
    layout: AttentionLayout = "bshd"
    cache_layout: str | None = None
    mask: AttentionMask = "none"
    window: tuple[int, int] | None = None
    scale: float | None = None
    soft_cap: float = 0.0
    dropout_p: float = 0.0
    lse: bool = False
    max_seqlen_q: int | None = None
    max_seqlen_k: int | None = None
    min_seqlen_q: int = 0
    alibi: bool = False
    dtype: str = ""
    qscale: QScale = "none"
    scale_blocks: tuple[int, int] = (0, 0)
    num_splits: int = 0
    dbias: bool = False
    deterministic: bool = False


class AppendOptions(NamedTuple):
    """Options of an append that its arrays do not express; see :meth:`Dispatcher.append_kv`."""

    direction: str = "append"
    layout: str = "bshd"
    cache_layout: str | None = None
    interleaved: bool = False


def check_rank(operand: ArrayView, name: str, allowed: tuple[int, ...]) -> None:
    """Raise ArrayError for an array of another rank, and for negative strides."""
    if len(operand.shape) not in allowed:
        listed = " or ".join(map(str, allowed))
        raise ArrayError(f"{name} has shape {operand.shape}; allowed: {listed} dimensions")
    if 0 in operand.shape:
        return
    if any(s < 0 for s, e in zip(operand.strides, operand.shape, strict=True) if e > 1):
        raise ArrayError(f"{name} has strides {operand.strides}; negative ones cannot be addressed, pass a copy")
    if operand.strides[-1] != 1 and operand.shape[-1] > 1 and len(operand.shape) > 2:
        raise ArrayError(f"{name} has strides {operand.strides}; the last dimension must be contiguous, pass a copy")


def attention_problem(views: Views, o: AttentionOptions) -> AttentionProblem:
    """Return the problem of the arrays. ArrayError or ProblemError if they, or the options, contradict each other."""
    for layout in (o.layout, o.cache_layout or o.layout):
        if layout not in LAYOUTS:
            raise ArrayError(f"layout is {layout!r}{closest(layout, LAYOUTS)}; allowed: {', '.join(LAYOUTS)}")
    group, table = "cu_seqlens_q" in views, _table(views)
    _check_group(views, o, group)
    check_rank(views["q"], "q", (3,) if group else (4,))
    _check_alike(views)
    requests, heads, rows = sizes(views["q"], o.layout)
    if views["k"].dtype != views["v"].dtype:
        raise ArrayError(f"k is {views['k'].dtype} and v is {views['v'].dtype}; they must be equal")
    batch = views["cu_seqlens_q"].shape[0] - 1 if group else requests
    keys = _keys(views, o, group, table)
    if group and o.max_seqlen_q is None:
        raise ArrayError("max_seqlen_q is not given; pass the length of the longest request beside cu_seqlens_q")
    strides: dict[str, Any] = {
        f"{name}_strides": memory_strides(views[name], o.layout)
        for name in ("q", "o", "do", "dq", "dk", "dv")
        if name in views
    }
    return AttentionProblem(
        o.direction, batch, heads, seqlen_q=o.max_seqlen_q if group else rows,  # type: ignore[arg-type]
        hdim_q=views["q"].shape[-1], dtype=views["q"].dtype, dtype_kv=views["k"].dtype,
        dtype_o=views["o"].dtype if "o" in views else o.dtype, group=group, total_q=rows if group else 0,
        kv_lengths="seqlens_k" in views, mask=o.mask, window=o.window, scale=o.scale, soft_cap=o.soft_cap,
        sink="sinks" in views, dropout_p=o.dropout_p, random_bytes="random_bytes" in views,
        lse=o.lse and o.direction == "forward", min_seqlen_q=o.min_seqlen_q, qscale=o.qscale,
        scale_block_q=o.scale_blocks[0], scale_block_k=o.scale_blocks[1],
        num_splits=o.num_splits if o.direction == "forward" else 1, dbias=o.dbias, deterministic=o.deterministic,
        layout=o.layout, **keys, **strides, **_bias(views, o),
    )  # fmt: skip


def _check_alike(views: Views) -> None:
    """Raise ArrayError unless results and gradients have the shapes of their operands."""
    for name, of, last in (("o", "q", "v"), ("do", "q", "v"), ("dq", "q", "q"), ("dk", "k", "k"), ("dv", "v", "v")):
        if name in views:
            # Vectorized V is (pages, heads, page_size / x, hdim_v, x).
            hdim = views[last].shape[3 if len(views[last].shape) == 5 else -1]
            shape = (*views[of].shape[:-1], hdim)
            if views[name].shape != shape:
                raise ArrayError(f"{name} has shape {views[name].shape}; allowed: {shape}")
            check_rank(views[name], name, (len(shape),))


def _check_group(views: Views, o: AttentionOptions, group: bool) -> None:
    """Raise ArrayError for first rows that belong to no operand or to no request."""
    if not group:
        for name, given in (("cu_seqlens_k", "cu_seqlens_k" in views), ("max_seqlen_q", o.max_seqlen_q is not None)):
            if given:
                raise ArrayError(f"{name} is given without cu_seqlens_q; pass both, or neither")
        return
    shape = views["cu_seqlens_q"].shape
    if len(shape) != 1 or shape[0] < 1:
        raise ArrayError(f"cu_seqlens_q has shape {shape}; allowed: (requests + 1,)")


def _table(views: Views) -> str:
    """The kind of page table. Raises ArrayError for arrays of one kind without the others of that kind."""
    table = "none" if "page_table" not in views else "list" if "page_indptr" in views else "block"
    for name in ("page_indptr", "last_page_lengths"):
        if (name in views) != (table == "list"):
            does = "missing beside" if table == "list" else "given without"
            raise ArrayError(
                f"{name} is {does} the rest of a list of pages: page_table, page_indptr, last_page_lengths"
            )
    if table == "block" and "seqlens_k" not in views:
        raise ArrayError("seqlens_k is missing; a block table needs the number of keys of each request")
    if table == "list" and "seqlens_k" in views:
        raise ArrayError("seqlens_k is given beside last_page_lengths, which say the same; leave it out")
    return table


def _keys(views: Views, o: AttentionOptions, group: bool, table: str) -> dict[str, Any]:
    """Problem fields that follow from K and V, or their caches, and the page table."""
    k, v, layout = views["k"], views["v"], o.layout if table == "none" else o.cache_layout or o.layout
    fields: dict[str, Any]
    if table == "none":
        for name, operand in (("k", k), ("v", v)):
            check_rank(operand, name, (3,) if group else (4,))
        _, heads, rows = sizes(k, layout)
        longest = o.max_seqlen_k if group else rows
        if longest is None:
            raise ArrayError("max_seqlen_k is not given; pass the length of the longest request beside cu_seqlens_k")
        fields = {"seqlen_k": longest, "total_k": rows if group else 0, "hdim_v": v.shape[-1]}
    else:
        fields, heads = _pages(views, o, table, layout)
    strides = {"k_strides": memory_strides(k, layout), "v_strides": memory_strides(v, layout)}
    return {"heads_kv": heads, **strides, **fields}


def _pages(views: Views, o: AttentionOptions, table: str, layout: str) -> tuple[dict[str, Any], int]:
    """Fields of a paged problem, and the number of heads of the caches."""
    k, v = views["k"], views["v"]
    for name, operand in (("k", k), ("v", v)):
        check_rank(operand, name, (4, 5))
    vectorized = len(k.shape) == 5
    if vectorized:
        pages, heads, page_size, hdim_v = k.shape[0], k.shape[1], k.shape[3], v.shape[3]
    else:
        (pages, heads, page_size), hdim_v = sizes(k, layout), v.shape[-1]
    stride = views["page_table"].shape[-1] if table == "block" else 0
    longest = o.max_seqlen_k
    if longest is None:
        if table == "list":
            raise ArrayError("max_seqlen_k is not given; pass the number of keys of the longest request")
        longest = stride * page_size
    fields = {
        "seqlen_k": longest, "hdim_v": hdim_v, "page_table": table, "pages": pages, "page_size": page_size,
        "page_table_stride": stride, "page_layout": "vectorized" if vectorized else "linear",
    }  # fmt: skip
    return fields, heads


def _bias(views: Views, o: AttentionOptions) -> dict[str, Any]:
    if "bias" not in views:
        return {}
    bias = views["bias"]
    if o.alibi:
        check_rank(bias, "alibi_slopes", (1, 2))
        return {"bias": "alibi", "slopes_stride": bias.shape[-1] if len(bias.shape) == 2 else 0}
    check_rank(bias, "bias", (3, 4))
    fields: dict[str, Any] = {"bias": "elementwise", "dtype_bias": bias.dtype}
    # An extent of 1 is broadcast.
    strides = [0 if e == 1 else s for s, e in zip(bias.strides, bias.shape, strict=True)]
    fields["bias_strides"] = (0, *strides[:2]) if len(bias.shape) == 3 else tuple(strides[:3])
    if "dbias" in views:
        fields["dbias_strides"] = memory_strides(views["dbias"], "bhsd")
    return fields


def append_problem(views: Views, o: AppendOptions) -> AppendProblem:
    """Return the problem of the arrays. ArrayError or ProblemError if they, or the options, contradict each other."""
    cache_layout = o.cache_layout or o.layout
    for layout in (o.layout, cache_layout):
        if layout not in LAYOUTS:
            raise ArrayError(f"layout is {layout!r}{closest(layout, LAYOUTS)}; allowed: {', '.join(LAYOUTS)}")
    paged, cache = "page_table" in views, views["k_cache"]
    for name, operand in views.items():
        if name in ("q", "k", "v", "q_out", "k_cache", "v_cache"):
            check_rank(operand, name, (4, 5) if paged and name.endswith("cache") else (4,))
    batch, heads, new = sizes(views["k"], o.layout)
    fields: dict[str, Any] = {"capacity": sizes(cache, cache_layout)[2]}
    if paged:
        vectorized = len(cache.shape) == 5
        page_size = cache.shape[3] if vectorized else sizes(cache, cache_layout)[2]
        stride = views["page_table"].shape[-1]
        fields = {
            "capacity": stride * page_size, "page_table": "block", "pages": cache.shape[0], "page_size": page_size,
            "page_table_stride": stride, "page_layout": "vectorized" if vectorized else "linear",
        }  # fmt: skip
    if "cos" in views:
        check_rank(views["cos"], "cos", (2,))
        places, half = views["cos"].shape
        fields |= {"rope": "interleaved" if o.interleaved else "half", "rotary_dim": 2 * half, "rotary_places": places}
        fields["dtype_rotary"] = views["cos"].dtype
    if "q" in views:
        _, fields["heads_q"], fields["seqlen_q"] = sizes(views["q"], o.layout)
    for name in ("q", "q_out", "k", "v", "k_cache", "v_cache"):
        if name in views:
            fields[f"{name}_strides"] = memory_strides(
                views[name], cache_layout if name.endswith("cache") else o.layout
            )
    return AppendProblem(
        batch, heads, new, views["k"].shape[-1], hdim_v=views["v"].shape[-1], dtype=views["k"].dtype, layout=o.layout,
        **fields,
    )  # fmt: skip
