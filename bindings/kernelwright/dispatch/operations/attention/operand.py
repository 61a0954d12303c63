"""Operands of attention: their names and order, their shapes, and arrays of any library against a plan's problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.append_problem import AppendProblem
from kernelwright.dispatch.operations.attention.problem import AttentionProblem
from kernelwright.dispatch.operations.attention.shapes import Extents

_TABLES = (
    *("bias", "sinks", "cu_seqlens_q", "cu_seqlens_k", "seqlens_k", "page_table", "page_indptr", "last_page_lengths"),
    *("descale_q", "descale_k", "descale_v", "scale_o"),
)
NAMES = {
    "forward": ("q", "k", "v", *_TABLES, "o", "lse", "random_bytes"),
    "backward": ("q", "k", "v", "o", "do", "lse", *_TABLES[:5], "dq", "dk", "dv", "dbias"),
    "append": ("q", "k", "v", "seqlens_k", "page_table", "cos", "sin", "q_out", "k_cache", "v_cache"),
}
"""What errors call the operands of a plan, inputs before outputs."""

NEEDED = {
    "forward": ("q", "k", "v"),
    "backward": ("q", "k", "v", "o", "do", "lse"),
    "append": ("k", "v", "seqlens_k", "k_cache", "v_cache"),
}
"""Operands that every problem has."""

OUTPUTS = {"forward": 3, "backward": 4, "append": 3}
"""How many of them are written: the last ones."""

C_NAMES = {"do": "d_o"}
"""Members of the argument structs that are not called like the operand."""


class Wanted(NamedTuple):
    """What a plan takes as one operand.

    :ivar dtype: element type.
    :ivar shape: extents of a dense array; None for a tensor of strides, whose ``extents`` count.
    :ivar extents: of a tensor of strides; its array has three or four dimensions, in one of two orders.
    :ivar least: whether more elements than ``shape`` has are taken too, as of a list of pages.
    """

    dtype: str
    shape: tuple[int, ...] | None = None
    extents: Extents | None = None
    least: bool = False


def wanted(problem: AttentionProblem | AppendProblem) -> dict[str, Wanted]:
    """The operands that launches of a problem take, by name; others must be None."""
    return _of_append(problem) if isinstance(problem, AppendProblem) else _of_attention(problem)


def _of_attention(p: AttentionProblem) -> dict[str, Wanted]:
    forward = p.direction == "forward"
    found = {
        "q": Wanted(p.dtype, extents=p.extents("q")),
        "k": Wanted(p.dtype_kv, extents=p.extents("k")),
        "v": Wanted(p.dtype_kv, extents=p.extents("v")),
        "o": Wanted(p.dtype_o, extents=p.extents("o")),
    }
    if p.lse or not forward:
        found["lse"] = Wanted("fp32", p.lse_shape)
    if not forward:
        found["do"] = Wanted(p.dtype_o, extents=p.extents("o"))
        found["dq"] = Wanted(p.dtype, extents=p.extents("q"))
        found |= {name: Wanted(p.dtype_kv, extents=p.extents(name)) for name in ("dk", "dv")}
        if p.dbias:
            found["dbias"] = Wanted(p.dtype_bias, extents=p.extents("dbias"))
    if p.bias == "elementwise":
        found["bias"] = Wanted(p.dtype_bias, extents=p.extents("bias"))
    elif p.bias == "alibi":
        found["bias"] = Wanted("fp32", (p.batch, p.slopes_stride) if p.slopes_stride else (p.heads_q,))
    if p.random_bytes:
        found["random_bytes"] = Wanted("int8", (*p.lse_shape, p.seqlen_k))
    if p.sink and forward:
        found["sinks"] = Wanted("fp32", (p.heads_q,))
    return found | _lengths(p) | _scales(p)


def _lengths(p: AttentionProblem) -> dict[str, Wanted]:
    found = {}
    if p.group:
        found["cu_seqlens_q"] = Wanted("int32", (p.batch + 1,))
        if p.page_table == "none":
            found["cu_seqlens_k"] = Wanted("int32", (p.batch + 1,))
    if p.kv_lengths:
        found["seqlens_k"] = Wanted("int32", (p.batch,))
    if p.page_table == "block":
        found["page_table"] = Wanted("int32", (p.batch, p.page_table_stride))
    if p.page_table == "list":
        found["page_table"] = Wanted("int32", (0,), least=True)
        found["page_indptr"] = Wanted("int32", (p.batch + 1,))
        found["last_page_lengths"] = Wanted("int32", (p.batch,))
    return found


def _scales(p: AttentionProblem) -> dict[str, Wanted]:
    shapes: dict[str, tuple[int, ...]] = {}
    if p.qscale == "per_tensor":
        shapes = dict.fromkeys(("descale_q", "descale_k", "descale_v"), (1,))
    elif p.qscale == "block_scale":
        keys = (p.batch, p.heads_kv, -(-p.seqlen_k // p.scale_block_k))
        shapes = {"descale_q": (p.batch, p.heads_q, -(-p.seqlen_q // p.scale_block_q))}
        shapes |= {"descale_k": keys, "descale_v": keys}
    elif p.qscale == "kv_block_scale":
        shapes = {"descale_q": (1,), "descale_k": (p.pages, p.heads_kv), "descale_v": (p.pages, p.heads_kv)}
    if dtypes.ITEMSIZE[p.dtype_o] == 1:
        shapes["scale_o"] = (1,)
    return {name: Wanted("fp32", shape) for name, shape in shapes.items()}


def _of_append(p: AppendProblem) -> dict[str, Wanted]:
    names = ("k", "v", "k_cache", "v_cache", *(("q", "q_out") if p.heads_q else ()))
    found = {name: Wanted(p.dtype, extents=p.extents(name)) for name in names}
    found["seqlens_k"] = Wanted("int32", (p.batch,))
    if p.page_table == "block":
        found["page_table"] = Wanted("int32", (p.batch, p.page_table_stride))
    if p.rope != "none":
        found |= dict.fromkeys(("cos", "sin"), Wanted(p.dtype_rotary, (p.rotary_places, p.rotary_dim // 2)))
    return found


def memory_strides(found: ArrayView, layout: str) -> tuple[int, int, int]:
    """Strides of requests, heads and rows of an array of three or four dimensions, or five: vectorized pages."""
    if len(found.shape) == 5:
        return found.strides[0], found.strides[1], 0
    request, first, second = (0, *found.strides[:2]) if len(found.shape) == 3 else found.strides[:3]
    return (request, second, first) if layout == "bshd" else (request, first, second)


def sizes(found: ArrayView, layout: str) -> tuple[int, int, int]:
    """Requests (1 without such a dimension), heads and rows of an array of three or four dimensions."""
    request, first, second = (1, *found.shape[:2]) if len(found.shape) == 3 else found.shape[:3]
    return (request, second, first) if layout == "bshd" else (request, first, second)


def check_plain(found: ArrayView, name: str, want: Wanted) -> None:
    """ArrayError unless an array is dense and has the shape that a plan takes."""
    assert want.shape is not None
    fits = len(found.shape) == 1 if want.least else found.shape == want.shape
    if not fits and not (want.shape == (1,) and found.shape == ()):
        raise ArrayError(f"{name} has shape {found.shape}; allowed for this plan: {want.shape}")
    size = 1
    for stride, extent in zip(reversed(found.strides), reversed(found.shape), strict=True):
        if 0 not in found.shape and extent > 1 and stride != size:
            raise ArrayError(f"{name} has strides {found.strides}; it must be dense, pass a contiguous copy")
        size *= max(extent, 1)


def check_tensor(found: ArrayView, name: str, want: Wanted, strides: Sequence[int]) -> None:
    """ArrayError unless a tensor has the extents and strides of the plan's problem, in one of both orders."""
    assert want.extents is not None
    for layout in ("bshd", "bhsd"):
        if _is(found, want.extents, strides, layout):
            return
    raise ArrayError(
        f"{name} has shape {found.shape} and strides {found.strides}; allowed for this plan: requests, heads, rows and "
        f"head dimension {tuple(want.extents)} with strides {tuple(strides)} of the first three"
    )


def _is(found: ArrayView, extents: Extents, strides: Sequence[int], layout: str) -> bool:
    dims = len(found.shape)
    if dims == 5:
        same = found.shape[0] == extents.requests and found.shape[1] == extents.heads
        inner = found.shape[2] * found.shape[3] * found.shape[4]
        return same and inner == extents.rows * extents.hdim and _steps(found, extents, strides, layout)
    if dims not in (3, 4) or found.shape[-1] != extents.hdim:
        return False
    # An extent of 1 is broadcast where the problem has a stride of 0.
    same = all(
        has == needs or (has == 1 and stride == 0)
        for has, needs, stride in zip(sizes(found, layout), extents[:3], strides, strict=True)
    )
    return same and _steps(found, extents, strides, layout)


def _steps(found: ArrayView, extents: Extents, strides: Sequence[int], layout: str) -> bool:
    if len(found.shape) == 5:
        return extents._replace(rows=1).normal(memory_strides(found, layout)) == tuple(strides)
    own = Extents(*sizes(found, layout), extents.hdim)
    return 0 in extents or own.normal(memory_strides(found, layout)) == extents.normal(strides)
