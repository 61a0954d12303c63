"""What CK Tile kernels of each variant ask for: permuted B, 8-bit floats of two kinds, shared K, fused epilogues."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType, Layout
from kernelwright.codegen.operations.gemm.spec import Activation, GemmSpec, Pipeline, StreamK
from kernelwright.codegen.violations import Violation

_EIGHT_BIT = frozenset({DType.FP8, DType.BF8})
_MIXED = (Pipeline.MEM, Pipeline.COMPV3)
_LOAD_BYTES = 16


def preshuffles(spec: GemmSpec) -> bool:
    """Whether the kernel reads a permuted B."""
    return spec.preshuffle or spec.pipeline is Pipeline.PRESHUFFLEV2


def check_preshuffle(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """What WeightPreshufflePipelineAGmemBGmemCRegV2 and its policy assert, or take for granted."""
    if not preshuffles(spec):
        return
    if spec.layout is not Layout.RCR:
        b_row = spec.layout.value[1] == "r"
        why = (
            "a permuted B is read as column-major whatever its layout says: a row-major one gives wrong results"
            if b_row
            else "the pipeline reads A along K only (wp_pipeline_agmem_bgmem_creg_v2.hpp)"
        )
        yield _violation("preshuffle", "layout", spec.layout, why, Layout.RCR, Layout.RCR)
    if spec.warp_tile.n not in (16, 32):
        why = "a lane's part of permuted B is known for warp tiles of 16 or 32 columns (GetKBPerLoad)"
        yield _violation("preshuffle", "warp_tile.n", str(spec.warp_tile.n), why, "16, 32", "32")
    bytes_a = ELEMENT_BYTES[spec.dtype_a]
    rows = spec.tile.m // (spec.wave.m * spec.warp_tile.m)
    per_lane = spec.warp_tile.m * spec.warp_tile.k * bytes_a * rows // arch.wave_size
    if per_lane % _LOAD_BYTES:
        why = f"a lane reads {per_lane} bytes of A from LDS per step of K, no whole loads of {_LOAD_BYTES}"
        yield _violation("preshuffle", "tile.m", str(spec.tile.m), why, "twice as many rows", str(2 * spec.tile.m))


def check_mixed_dtypes(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """CK's pipelines multiply both operands as A's dtype; ours tell the instruction B's, where there is one."""
    if spec.dtype_a == spec.dtype_b:
        return
    if {spec.dtype_a, spec.dtype_b} != _EIGHT_BIT:
        why = "only 8-bit floats of two kinds are multiplied with each other"
        yield _violation("mixed_dtypes", "dtype_b", spec.dtype_b, why, spec.dtype_a, spec.dtype_a)
    elif spec.pipeline not in _MIXED:
        why = "its block GEMM takes both operands for A's dtype (BlockUniversalGemmAsBsCr of the others is told B's)"
        yield _violation("mixed_dtypes", "pipeline", spec.pipeline, why, ", ".join(_MIXED), Pipeline.COMPV3)
    elif arch.lds_transposing_loads and spec.layout is not Layout.RCR:
        why = f"{arch.name} transposes while it reads LDS, in patterns of one dtype"
        yield _violation("mixed_dtypes", "layout", spec.layout, why, Layout.RCR, Layout.RCR)


def check_shared_k(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Which kernels can share K among workgroups, or walk tiles in a fixed grid."""
    if spec.stream_k is not StreamK.NONE:
        if spec.pipeline is Pipeline.COMPV6:
            why = "a share of a tile may be a single K tile, and compv6 needs two"
            yield _violation("shared_k", "pipeline", spec.pipeline, why, Pipeline.COMPV3, Pipeline.COMPV3)
        if spec.persistent:
            why = "stream-K's workgroups walk the tiles of their shares already"
            yield _violation("shared_k", "persistent", "True", why, "False", "False")
    if preshuffles(spec) and (spec.stream_k is not StreamK.NONE or spec.split_k):
        field = "split_k" if spec.split_k else "stream_k"
        why = "permuted B is addressed from the start of K"
        none = "False" if spec.split_k else "none"
        yield _violation("shared_k", field, str(getattr(spec, field)), why, none, none)
    if arch.compute_units == 0 and (spec.persistent or spec.stream_k is not StreamK.NONE):
        why = f"the grid is fixed when the kernel is built, and {arch.name} does not say how many compute units it has"
        field = "persistent" if spec.persistent else "stream_k"
        none = "False" if spec.persistent else "none"
        yield _violation("shared_k", field, str(getattr(spec, field)), why, none, none)


def check_variants(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Which variants go together, beyond what holds for every backend."""
    if preshuffles(spec):
        for field, value in (("batched", spec.batched), ("grouped", spec.grouped)):
            if value:
                why = "a permuted B is one matrix: what lies between several is not defined"
                yield _violation("variants", field, "True", why, "False", "False")
    if spec.dtype_acc is DType.INT32 and spec.activation not in (Activation.NONE, Activation.RELU):
        why = "sums of integers stay integers"
        allowed = f"{Activation.NONE}, {Activation.RELU}"
        yield _violation("variants", "activation", spec.activation, why, allowed, Activation.RELU)


def _violation(rule: str, field: str, value: str, why: str, allowed: str, nearest: str) -> Violation:
    return Violation(f"ck_tile.{rule}", field, str(value), why, str(allowed), str(nearest))
