"""What our NVIDIA kernels of convolution cannot do, or do only by spilling registers."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.fields import StreamK
from kernelwright.codegen.operations.convolution import cutlass as symbols
from kernelwright.codegen.operations.convolution.constraints.report import flags, refused, text, triple
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec
from kernelwright.codegen.violations import Violation, rules
from kernelwright.problems.convolution.description import Specialization

_WGMMA_ROWS, _WGMMA_DEPTH = 64, 16
_THREADS = 128  # threads of a warp group
_MAX_ACCUMULATORS = 128


def _groups(spec: GroupedConvSpec) -> int:
    return symbols.WARP_GROUPS.get(spec.scheduler, 1)


def check_wave(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """The scheduler decides how many warp groups share a tile."""
    wanted = (_groups(spec), 1, 1)
    if not spec.depthwise and triple(spec.wave) != wanted:
        why = f"{spec.scheduler} has {wanted[0]} warp group(s) for each tile"
        yield refused("conv_cutlass.wave", "wave", text(triple(spec.wave)), text(wanted), why)


def check_warp_tile(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """wgmma multiplies 64 rows by all columns of the tile, 16 products deep (PTX ISA, wgmma.mma_async)."""
    wanted = (_WGMMA_ROWS, spec.tile.n, _WGMMA_DEPTH)
    if not spec.depthwise and triple(spec.warp_tile) != wanted:
        why = "wgmma multiplies 64 rows by all columns of the tile"
        yield refused("conv_cutlass.warp_tile", "warp_tile", text(triple(spec.warp_tile)), text(wanted), why)


def check_accumulators(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Accumulators live in registers; with more of them a thread spills."""
    most = _MAX_ACCUMULATORS * _groups(spec) * _THREADS
    if not spec.depthwise and spec.tile.m * spec.tile.n > most:
        count = spec.tile.m * spec.tile.n // (_groups(spec) * _THREADS)
        why = f"{count} accumulators for each thread leave too few registers for addresses and the epilogue"
        nearest = f"tile.n = {most // spec.tile.m // 64 * 64}"
        value, allowed = text(triple(spec.tile)), f"tile.m * tile.n <= {most} with {spec.scheduler}"
        yield Violation("conv_cutlass.accumulators", "tile", value, why, allowed, nearest)


def check_two_stage(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Backward weight has few tiles and long sums: every kernel can share them in slices."""
    if spec.direction is Direction.BACKWARD_WEIGHT and not spec.two_stage and not spec.depthwise:
        why = "every kernel leaves slices where a problem asks for them, so one that cannot would be a second name"
        yield refused("conv_cutlass.two_stage", "two_stage", False, True, why)


def check_features(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Groups are merged, images addressed as matrices and edges cut off at run time."""
    why = "kernels find it out from the problem"
    yield from flags(
        "conv_cutlass.features",
        spec,
        (
            ("specialization", Specialization.DEFAULT),
            ("num_groups_to_merge", 1),
            ("num_wave_groups", 1),
            ("double_smem_buffer", False),
            ("split_image", False),
            ("explicit_gemm", False),
        ),
        why,
    )
    for axis in "mnk":
        if not getattr(spec.pad, axis):
            yield refused("conv_cutlass.features", f"pad.{axis}", False, True, why)


def check_stream_k(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Shares of a sum are equal slices (two_stage); stream-K's uneven ones gained nothing on H200."""
    if spec.stream_k is not StreamK.NONE:
        why = "sums are shared in equal slices only: write two_stage = True"
        yield refused("conv_cutlass.stream_k", "stream_k", spec.stream_k, StreamK.NONE, why)


RULES = rules(
    "conv_cutlass.",
    (
        check_wave,
        check_warp_tile,
        check_accumulators,
        check_two_stage,
        check_features,
        check_stream_k,
    ),
)
"""Rules that the CUTLASS backend adds to the common ones."""
