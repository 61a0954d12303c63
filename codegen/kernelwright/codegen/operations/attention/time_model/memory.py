"""What the kernels of each backend ask of strides, pages and lengths."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.operations.attention.kinds import Family
from kernelwright.codegen.operations.attention.time_model.posed import Posed, Stage
from kernelwright.codegen.operations.attention.time_model.traits import Traits

_LINE_BYTES = 16  # rows of NVIDIA kernels begin at multiples
_PAGE_PART = 8  # rows that pages are copied by
_TENSORS: Mapping[Stage, tuple[str, ...]] = {
    Stage.PART: ("q", "k", "v"),
    Stage.COMBINE: ("o",),
    Stage.DOT: ("o", "do"),
    Stage.DQ_DK_DV: ("q", "k", "v", "do", "dk", "dv"),
    Stage.CONVERT_DQ: ("dq",),
}


def _bytes(p: Posed, tensor: str) -> int:
    dtypes = {"q": p.dtype, "dq": p.dtype, "o": p.dtype_o, "do": p.dtype_o, "bias": p.dtype_bias, "dbias": p.dtype_bias}
    return ELEMENT_BYTES[DType(dtypes.get(tensor, p.dtype_kv))]


def _on_cpus(t: Traits, p: Posed) -> bool:
    """cpu/launchers/attention/checks.hpp: a gradient of the bias for each request."""
    shared = p.main is Stage.DQ_DK_DV and p.dbias and p.batch > 1 and p.stride("dbias")[0] == 0 and not p.group
    return not shared


def _on_nvidia(t: Traits, p: Posed) -> bool:
    """cuda/launchers/attention/problem.c."""
    stage = p.main
    if p.batch == 0 or (p.seqlen_q == 0 and stage is not Stage.DQ_DK_DV):
        return True
    tensors: tuple[str, ...] = ("q", "k", "v", "o") if stage is Stage.PART else ("o",)
    if stage is Stage.DQ_DK_DV:
        tensors = ("q", "k", "v", "do", "dq", "dk", "dv")
    lengths = {"q": p.seqlen_q, "o": p.seqlen_q, "do": p.seqlen_q, "dq": p.seqlen_q}
    for tensor in tensors:
        strides = p.stride(tensor)
        if any(stride * _bytes(p, tensor) % _LINE_BYTES for stride in strides):
            return False
        if strides[2] == 0 and lengths.get(tensor, p.seqlen_k) > 1:
            return False
    if stage in (Stage.PART, Stage.DQ_DK_DV) and (p.scale <= 0 or p.soft_cap < 0):
        return False
    if stage is Stage.PART and t.family is Family.BATCH_PREFILL and p.pages:
        whole = all(p.stride(name)[2] and p.stride(name)[0] % p.stride(name)[2] == 0 for name in ("k", "v"))
        return whole and p.page_size % _PAGE_PART == 0
    packed = stage is Stage.PART and t.family is Family.FWD and not p.group and p.kv_lengths and p.batch > 1
    return not packed or all(not p.stride(name)[2] or p.stride(name)[0] % p.stride(name)[2] == 0 for name in ("k", "v"))


def _on_amd(t: Traits, p: Posed) -> bool:
    """attn_conditions.c."""
    if any(stride * _bytes(p, tensor) % t.aligned for tensor in _read_on_amd(p) for stride in p.stride(tensor)):
        return False
    if p.main is Stage.CONVERT_DQ:
        return p.dq_slices == (1 if t.tile_n0 == 0 else -(-max(p.seqlen_k, 1) // t.tile_n0))
    if p.main is not Stage.PART or p.page_table == "none":
        return p.main is not Stage.PART or p.seqlen_k > 0 or bool(t.pad_sk)
    if t.family is Family.BATCH_PREFILL:
        return all(p.stride(name)[0] == p.page_size * p.stride(name)[2] for name in ("k", "v"))
    return p.page_size > 0 and p.page_size % t.tile_n0 == 0


def _read_on_amd(p: Posed) -> Iterator[str]:
    yield from _TENSORS[p.main]
    if p.main is Stage.PART:
        yield "o"
    if p.main in (Stage.PART, Stage.DQ_DK_DV) and p.bias == "elementwise":
        yield "bias"
        if p.dbias:
            yield "dbias"


MEMORY: Mapping[str, Callable[[Traits, Posed], bool]] = {"cpu": _on_cpus, "cutlass": _on_nvidia, "ck_tile": _on_amd}
"""By backend: whether a kernel can reach the operands of a problem that its traits serve."""
