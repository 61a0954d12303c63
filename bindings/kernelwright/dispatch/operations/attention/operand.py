"""Operands of attention: their names and order, their shapes, and checks of arrays against a plan's problem."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.problems.attention.shapes import Extents

_TABLES = (
    *("bias", "sinks", "cu_seqlens_q", "cu_seqlens_k", "seqlens_k", "page_table", "page_indptr", "last_page_lengths"),
    *("descale_q", "descale_k", "descale_v", "scale_o"),
)
NAMES = {
    "forward": ("q", "k", "v", *_TABLES, "o", "lse", "random_bytes"),
    "backward": ("q", "k", "v", "o", "do", "lse", *_TABLES[:5], "dq", "dk", "dv", "dbias"),
    "append": ("q", "k", "v", "seqlens_k", "page_table", "cos", "sin", "q_out", "k_cache", "v_cache"),
}
"""Names of a plan's operands in errors, inputs before outputs."""

NEEDED = {
    "forward": ("q", "k", "v"),
    "backward": ("q", "k", "v", "o", "do", "lse"),
    "append": ("k", "v", "seqlens_k", "k_cache", "v_cache"),
}
"""Operands that every problem has."""

OUTPUTS = {"forward": 3, "backward": 4, "append": 3}
"""Number of operands that are written: the last ones."""

C_NAMES = {"do": "d_o"}
"""Members of the argument structs whose names differ from the operand's."""


class Wanted(NamedTuple):
    """Requirements of a plan for one operand.

    :ivar dtype: element type.
    :ivar shape: extents of a dense array; None for a strided tensor, which has ``extents`` instead.
    :ivar extents: extents of a strided tensor; its array has three or four dimensions, in one of two orders.
    :ivar least: whether more elements than those of ``shape`` are accepted too, as in a list of pages.
    """

    dtype: str
    shape: tuple[int, ...] | None = None
    extents: Extents | None = None
    least: bool = False


def wanted(problem: AttentionProblem | AppendProblem) -> dict[str, Wanted]:
    """Operands that launches of a problem take, by name; all others must be None."""
    return _of_append(problem) if isinstance(problem, AppendProblem) else _of_attention(problem)


def _of_attention(p: AttentionProblem) -> dict[str, Wanted]:
    forward = p.direction == "forward"
    wanted = {
        "q": Wanted(p.dtype, extents=p.extents("q")),
        "k": Wanted(p.dtype_kv, extents=p.extents("k")),
        "v": Wanted(p.dtype_kv, extents=p.extents("v")),
        "o": Wanted(p.dtype_o, extents=p.extents("o")),
    }
    if p.lse or not forward:
        wanted["lse"] = Wanted("fp32", p.lse_shape)
    if not forward:
        wanted["do"] = Wanted(p.dtype_o, extents=p.extents("o"))
        wanted["dq"] = Wanted(p.dtype, extents=p.extents("q"))
        wanted |= {name: Wanted(p.dtype_kv, extents=p.extents(name)) for name in ("dk", "dv")}
        if p.dbias:
            wanted["dbias"] = Wanted(p.dtype_bias, extents=p.extents("dbias"))
    if p.bias == "elementwise":
        wanted["bias"] = Wanted(p.dtype_bias, extents=p.extents("bias"))
    elif p.bias == "alibi":
        wanted["bias"] = Wanted("fp32", (p.batch, p.slopes_stride) if p.slopes_stride else (p.heads_q,))
    if p.random_bytes:
        wanted["random_bytes"] = Wanted("int8", (*p.lse_shape, p.seqlen_k))
    if p.sink and forward:
        wanted["sinks"] = Wanted("fp32", (p.heads_q,))
    return wanted | _lengths(p) | _scales(p)


def _lengths(p: AttentionProblem) -> dict[str, Wanted]:
    wanted = {}
    if p.group:
        wanted["cu_seqlens_q"] = Wanted("int32", (p.batch + 1,))
        if p.page_table == "none":
            wanted["cu_seqlens_k"] = Wanted("int32", (p.batch + 1,))
    if p.kv_lengths:
        wanted["seqlens_k"] = Wanted("int32", (p.batch,))
    if p.page_table == "block":
        wanted["page_table"] = Wanted("int32", (p.batch, p.page_table_stride))
    if p.page_table == "list":
        wanted["page_table"] = Wanted("int32", (0,), least=True)
        wanted["page_indptr"] = Wanted("int32", (p.batch + 1,))
        wanted["last_page_lengths"] = Wanted("int32", (p.batch,))
    return wanted


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
    wanted = {name: Wanted(p.dtype, extents=p.extents(name)) for name in names}
    wanted["seqlens_k"] = Wanted("int32", (p.batch,))
    if p.page_table == "block":
        wanted["page_table"] = Wanted("int32", (p.batch, p.page_table_stride))
    if p.rope != "none":
        wanted |= dict.fromkeys(("cos", "sin"), Wanted(p.dtype_rotary, (p.rotary_places, p.rotary_dim // 2)))
    return wanted


def memory_strides(operand: ArrayView, layout: str) -> tuple[int, int, int]:
    """Strides of requests, heads and rows of an array of three or four dimensions, or five for vectorized pages."""
    if len(operand.shape) == 5:
        return operand.strides[0], operand.strides[1], 0
    request, first, second = (0, *operand.strides[:2]) if len(operand.shape) == 3 else operand.strides[:3]
    return (request, second, first) if layout == "bshd" else (request, first, second)


def sizes(operand: ArrayView, layout: str) -> tuple[int, int, int]:
    """Numbers of requests (1 without that dimension), heads and rows of an array of three or four dimensions."""
    request, first, second = (1, *operand.shape[:2]) if len(operand.shape) == 3 else operand.shape[:3]
    return (request, second, first) if layout == "bshd" else (request, first, second)


def check_plain(operand: ArrayView, name: str, want: Wanted) -> None:
    """Raise ArrayError unless an array is dense and has the shape that a plan takes."""
    assert want.shape is not None
    fits = len(operand.shape) == 1 if want.least else operand.shape == want.shape
    if not fits and not (want.shape == (1,) and operand.shape == ()):
        raise ArrayError(f"{name} has shape {operand.shape}; allowed for this plan: {want.shape}")
    if not operand.dense:
        raise ArrayError(f"{name} has strides {operand.strides}; it must be dense, pass a contiguous copy")


def check_tensor(operand: ArrayView, name: str, want: Wanted, strides: Sequence[int]) -> None:
    """Raise ArrayError unless a tensor has the extents and strides of the plan's problem, in either order."""
    assert want.extents is not None
    for layout in ("bshd", "bhsd"):
        if _is(operand, want.extents, strides, layout):
            return
    raise ArrayError(
        f"{name} has shape {operand.shape} and strides {operand.strides}; allowed for this plan: requests, heads, rows "
        f"and head dimension {tuple(want.extents)} with strides {tuple(strides)} of the first three"
    )


def _is(operand: ArrayView, extents: Extents, strides: Sequence[int], layout: str) -> bool:
    dims = len(operand.shape)
    if dims == 5:
        same = operand.shape[0] == extents.requests and operand.shape[1] == extents.heads
        inner = operand.shape[2] * operand.shape[3] * operand.shape[4]
        return same and inner == extents.rows * extents.hdim and _steps(operand, extents, strides, layout)
    if dims not in (3, 4) or operand.shape[-1] != extents.hdim:
        return False
    # An extent of 1 is broadcast where the problem has a stride of 0.
    same = all(
        has == needs or (has == 1 and stride == 0)
        for has, needs, stride in zip(sizes(operand, layout), extents[:3], strides, strict=True)
    )
    return same and _steps(operand, extents, strides, layout)


def _steps(operand: ArrayView, extents: Extents, strides: Sequence[int], layout: str) -> bool:
    if len(operand.shape) == 5:
        return extents._replace(rows=1).normal(memory_strides(operand, layout)) == tuple(strides)
    own = Extents(*sizes(operand, layout), extents.hdim)
    return 0 in extents or own.normal(memory_strides(operand, layout)) == extents.normal(strides)
