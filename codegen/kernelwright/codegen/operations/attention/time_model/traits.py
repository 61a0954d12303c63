"""What the C ABI will say of a kernel that need not be built: kw_attention_traits with words in place of numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields

from kernelwright.arch import load
from kernelwright.codegen.operations.attention import ck_tile, cpu, cutlass
from kernelwright.codegen.operations.attention.arch_section import attention_features
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Rope
from kernelwright.codegen.operations.attention.spec import AttentionSpec

Words = frozenset[str]
_FLAGS = {"0": "no", "1": "yes"}


@dataclass(frozen=True)
class Traits:
    """Members of kw_attention_traits; sets of values hold words, of flags ``yes`` and ``no``.

    ``aligned`` is what strides of tensors are multiples of on AMD GPUs, in bytes; ``dots`` is 1 for kernels that need a
    CPU's dot products of bf16.
    """

    family: Family
    dtype_q: str
    dtype_kv: str
    dtype_o: str
    dtype_bias: str = ""
    hdim_q: int = 0
    hdim_v: int = 0
    vector_q: int = 0
    vector_v: int = 0
    pad_s: int = 0
    pad_sk: int = 0
    pad_d: int = 0
    pad_dv: int = 0
    tile_m0: int = 0
    tile_n0: int = 0
    groups: Words = frozenset()
    masks: Words = frozenset()
    biases: Words = frozenset()
    lses: Words = frozenset()
    sinks: Words = frozenset()
    dropouts: Words = frozenset()
    random_bytes: Words = frozenset()
    soft_caps: Words = frozenset()
    kv_lengths: Words = frozenset()
    dbiases: Words = frozenset()
    deterministics: Words = frozenset()
    min_seqlens_q: Words = frozenset()
    qscales: Words = frozenset()
    page_tables: Words = frozenset()
    page_layouts: Words = frozenset()
    page_size: int = 0
    ropes: Words = frozenset()
    max_splits: int = 0
    leaves_splits: Words = frozenset()
    leaves_dq: int = 0
    max_seqlen_q: int = 0
    blocks_per_cu: int = 0
    selection_rank: int = 0
    packs_heads: int = 0
    work_percent: int = 0
    aligned: int = 1
    dots: int = 0

    def hdims_fit(self, hdim_q: int | None, hdim_v: int | None) -> bool:
        """Whether head dimensions, None for one that is not read, are served."""
        q = hdim_q is None or _fits(self.hdim_q, self.pad_d, self.vector_q, hdim_q)
        return q and (hdim_v is None or _fits(self.hdim_v, self.pad_dv, self.vector_v, hdim_v))


def _fits(most: int, pad: int, vector: int, hdim: int) -> bool:
    exact = most == 0 or (hdim <= most if pad else hdim == most)
    return exact and (vector <= 1 or hdim % vector == 0)


@functools.lru_cache(maxsize=1 << 16)
def traits_of(spec: AttentionSpec, arch: str) -> Traits:
    """The traits of a kernel of a shipped or registered architecture."""
    found = load(arch)
    raw: Mapping[str, object]
    aligned = 1
    if found.backend == "cpu":
        needed = attention_features(spec.dtype, spec.warp_tile.k0, found)
        raw = {**cpu.variant(spec), **_on_cpus(spec), "dots": int("avx512_bf16" in needed)}
    elif found.backend == "cutlass":
        raw = cutlass.traits(spec)
    else:
        raw, aligned = ck_tile.traits(spec, found), ck_tile.alignment(spec)
    known = {field.name: field.type for field in fields(Traits)}
    read = {name: _value(name, value, known[name]) for name, value in raw.items() if name in known}
    return Traits(**{**read, "family": spec.family, "aligned": aligned})  # type: ignore[arg-type]


def _value(name: str, value: object, kind: object) -> object:
    text = str(value)
    if kind == "int":
        return int(text)
    if kind == "Words":
        return _set(text)
    return "" if text == "0" else text.removeprefix("KW_").lower()


def _set(text: str) -> Words:
    """Words of an expression such as ``KW_SERVES(KW_MASK_NONE) | KW_SERVES(1)``."""
    if text == "KW_SERVES_BOTH":
        return frozenset(_FLAGS.values())
    members = [
        one.strip().removeprefix("KW_SERVES(").removesuffix(")") for one in text.split("|") if one.strip() != "0"
    ]
    return frozenset(_FLAGS.get(one, one.partition("_")[2].partition("_")[2].lower()) for one in members)


def _on_cpus(spec: AttentionSpec) -> Mapping[str, object]:
    """What cpu/attention/attention.hpp adds to the variant."""
    dtype, narrow = f"KW_{spec.dtype.inputs.upper()}", str(spec.dtype).startswith("fp8")
    bias, out = "KW_FP32" if narrow else dtype, f"KW_{spec.dtype.output.upper()}"
    common = {
        "dtype_q": dtype,
        "dtype_kv": dtype,
        "dtype_o": out,
        "pad_s": 1,
        "pad_sk": 1,
    }
    if spec.family not in cpu.PART and spec.family not in (Family.BWD_DQ_DK_DV, Family.FWD_APPENDKV):
        return {**common, "dtype_q": out, "dtype_kv": out}
    if spec.family is Family.FWD_APPENDKV:
        rotary = {} if spec.rope is Rope.NONE else {"dtype_bias": dtype}
        return {**common, **rotary, "page_layouts": "KW_SERVES(KW_PAGE_LINEAR)"}
    scores = {
        **common,
        **({"dtype_bias": bias} if spec.bias is Bias.ELEMENTWISE else {}),
        "kv_lengths": "KW_SERVES_BOTH",
        "random_bytes": "KW_SERVES(0)",
    }
    if spec.family is Family.BWD_DQ_DK_DV:
        tile = {"tile_m0": spec.warp_tile.m0, "tile_n0": spec.bwd_tile.n0}
        return {**scores, **tile, "deterministics": "KW_SERVES_BOTH", "leaves_dq": 1}
    scales = ("NONE", "PER_TENSOR", "BLOCK_SCALE", "KV_BLOCK_SCALE") if narrow else ("NONE",)
    return {
        **scores,
        "tile_m0": spec.tile.m0,
        "tile_n0": spec.tile.n0,
        "min_seqlens_q": "KW_SERVES_BOTH",
        "qscales": " | ".join(f"KW_SERVES(KW_QSCALE_{scale})" for scale in scales),
        "page_layouts": "KW_SERVES(KW_PAGE_LINEAR)",
        "packs_heads": 1,
    }
