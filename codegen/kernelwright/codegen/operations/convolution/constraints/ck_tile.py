"""What the pinned CK Tile cannot build of convolution, or builds wrongly: beyond the architecture's tables.

Sources name files of the pinned CK Tile (amd-aiter 0.1.7.post2.dev18) below ``ck_tile/``.
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.fields import StreamK
from kernelwright.codegen.operations.convolution import ck_tile as symbols
from kernelwright.codegen.operations.convolution.arch_section import conv_section
from kernelwright.codegen.operations.convolution.constraints import ck_tile_copies as copies
from kernelwright.codegen.operations.convolution.constraints.report import member, one_of, refused, text, triple
from kernelwright.codegen.operations.convolution.spec import (
    ConvEpilogue,
    ConvPipeline,
    ConvScheduler,
    Direction,
    GroupedConvSpec,
)
from kernelwright.codegen.violations import Violation, rules

_MAX_WORKGROUP = 1024
_TRANSPOSED = {Direction.FORWARD: 0, Direction.BACKWARD_DATA: 1, Direction.BACKWARD_WEIGHT: 2}
_PIPELINES = tuple(str(name) for name, symbol in symbols.PIPELINES.items() if symbol is not None)


def check_pipeline(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Only pipelines that the pinned CK Tile has, or that we wrote, become kernels."""
    if symbols.PIPELINES[spec.pipeline] is None and not spec.depthwise:
        why = "the pinned CK Tile has no such pipeline that addresses images (ops/gemm/pipeline)"
        yield one_of("ck_tile_conv.pipeline", "pipeline", spec.pipeline, _PIPELINES, why)
    if symbols.SCHEDULERS[spec.scheduler] is None and not spec.depthwise:
        known = tuple(str(name) for name, symbol in symbols.SCHEDULERS.items() if symbol is not None)
        yield one_of("ck_tile_conv.pipeline", "scheduler", spec.scheduler, known, "no pipeline has such a scheduler")


def check_depthwise(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """The pinned CK Tile has implicit GEMMs only, and no depthwise kernel (ops/grouped_convolution/kernel)."""
    if spec.depthwise:
        yield refused("ck_tile_conv.depthwise", "depthwise", True, False, "the pinned CK Tile has no depthwise kernel")


def check_stream_k(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Shares of a sum are equal slices (two_stage); stream-K's uneven ones are not done."""
    if spec.stream_k is not StreamK.NONE:
        why = "sums are shared in equal slices only: write two_stage = True"
        yield refused("ck_tile_conv.stream_k", "stream_k", spec.stream_k, StreamK.NONE, why)


def check_split_image(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Offsets are 32 bits wide, and images are not computed in pieces."""
    if spec.split_image:
        why = "images are not computed in pieces: a launch refuses those of 2 GiB and more"
        yield refused("ck_tile_conv.split_image", "split_image", True, False, why)


def check_merged_groups(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Each group is a GEMM of its own, addressed from the group's first channel."""
    if spec.num_groups_to_merge != 1:
        why = "each group is a GEMM of its own"
        yield refused("ck_tile_conv.merged_groups", "num_groups_to_merge", spec.num_groups_to_merge, 1, why)


def check_wave_groups(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Only pipeline v5 has wave groups, and the compiler does not finish on it."""
    if spec.num_wave_groups != 1:
        yield refused(
            "ck_tile_conv.wave_groups", "num_wave_groups", spec.num_wave_groups, 1, "no pipeline has wave groups"
        )


def check_padding(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Every extent is padded, so a kernel that says it cannot would be a second name for the same code."""
    for axis in "mnk":
        if not getattr(spec.pad, axis):
            yield refused("ck_tile_conv.padding", f"pad.{axis}", False, True, "every extent is padded")


def check_double_smem_buffer(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Only pipeline v4 keeps two stages in LDS; the others have no body for it."""
    if spec.double_smem_buffer and spec.pipeline is not ConvPipeline.COMPV4:
        why = f"{spec.pipeline} keeps one stage in LDS (DoubleSmemBuffer)"
        yield refused("ck_tile_conv.double_smem_buffer", "double_smem_buffer", True, False, why)


def check_warp_tile(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """A warp tile without a matrix instruction does not compile (ops/gemm/warp/warp_gemm_dispatcher.hpp)."""
    tiles = conv_section(arch).instruction_tile_sets.get(spec.dtype, frozenset())
    if arch.lds_transposing_loads and _TRANSPOSED[spec.direction]:
        tiles = frozenset(tile for tile in tiles if copies.transposing_read_exists(tile, spec.dtype))
    if spec.depthwise or triple(spec.warp_tile) in tiles:
        return
    if not tiles:
        why = f"{arch.name} cannot transpose {spec.dtype} while it reads LDS (load_tile_transpose.hpp)"
        yield Violation("ck_tile_conv.warp_tile", "direction", spec.direction, why, "forward", "forward")
    else:
        why = "CK Tile's dispatcher has no such matrix instruction here"
        yield member("ck_tile_conv.warp_tile", "warp_tile", spec.warp_tile, sorted(tiles), why)


def check_wave_k(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Waves share a tile along M and N only: the epilogue counts wave.m * wave.n waves (cshuffle_epilogue.hpp)."""
    if spec.wave.k != 1:
        yield refused("ck_tile_conv.wave_k", "wave.k", spec.wave.k, 1, "no pipeline adds up waves along K")


def check_workgroup(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """A workgroup has at most 1024 work-items."""
    size = spec.wave.m * spec.wave.n * spec.wave.k * arch.wave_size
    if size > _MAX_WORKGROUP:
        why = f"the workgroup would have {size} work-items"
        allowed = f"at most {_MAX_WORKGROUP // arch.wave_size} waves"
        yield Violation("ck_tile_conv.workgroup", "wave", text(triple(spec.wave)), why, allowed, "2x2x1")


def check_copy_pattern(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Copies of A, B and C are spread evenly over the work-items, in whole vectors (static_encoding_pattern.hpp)."""
    if spec.depthwise or spec.wave.k != 1:
        return
    for copy, field in copies.copies(spec, arch.wave_size):
        problem = copy.problem(arch.wave_size, spec.wave.m * spec.wave.n)
        if problem:
            nearest = copies.nearest_vector(spec, field, arch.wave_size)
            allowed = "vectors with which every wave copies whole rows, all work-items the same number"
            value = str(getattr(spec.vector, field))
            why = f"{copy.what}: {problem}"
            yield Violation("ck_tile_conv.copy_pattern", f"vector.{field}", value, why, allowed, nearest)


def check_cshuffle_repeat(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """CShuffle stores an odd number of 32-wide warp tiles per wave wrongly (CK issue 9684)."""
    if spec.epilogue is not ConvEpilogue.CSHUFFLE or spec.depthwise:
        return
    for axis in "mn":
        tile, wave, warp = (getattr(extent, axis) for extent in (spec.tile, spec.wave, spec.warp_tile))
        repeat = tile // (wave * warp)
        if warp == 32 and repeat > 1 and repeat % 2 == 1:
            why = f"each wave stores {repeat} warp tiles of 32 along {axis}: an odd number is stored wrongly"
            allowed = f"an even number of warp tiles per wave, or epilogue {ConvEpilogue.DEFAULT}"
            nearest = str((repeat - 1) * wave * warp)
            yield Violation("ck_tile_conv.cshuffle_repeat", f"tile.{axis}", str(tile), why, allowed, nearest)


def check_lds(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """All LDS buffers together fit, the epilogue's included."""
    if spec.depthwise:
        return
    used = copies.lds_bytes(spec, arch.wave_size)
    if used > arch.lds_bytes:
        why = f"A, B and the epilogue take {used} bytes of LDS; {arch.name} has {arch.lds_bytes}"
        yield Violation(
            "ck_tile_conv.lds", "tile", text(triple(spec.tile)), why, f"at most {arch.lds_bytes}", "a smaller tile"
        )


def check_interwave_weight(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Upstream's notes on its kernels: half of the weight groups come out zero where waves share a short sum."""
    half = spec.dtype.endswith("16")
    shared = spec.wave.m * spec.wave.n > 1
    if spec.direction is Direction.BACKWARD_WEIGHT and half and shared and spec.scheduler is ConvScheduler.INTERWAVE:
        why = "16-bit gradients of weights are wrong where several waves share a tile between waves' turns"
        intrawave = ConvScheduler.INTRAWAVE
        yield refused("ck_tile_conv.interwave_weight", "scheduler", spec.scheduler, intrawave, why)


def check_accumulators(spec: GroupedConvSpec, arch: Arch) -> Iterator[Violation]:
    """Too many accumulators per work-item spill to scratch memory."""
    work_items = spec.wave.m * spec.wave.n * spec.wave.k * arch.wave_size
    waves = symbols.waves_per_simd(spec, arch)
    count, limit = spec.tile.m * spec.tile.n // work_items, copies.accumulator_limit(spec, waves)
    if count > limit:
        why = f"{count} accumulators per work-item leave too few registers: the kernel would spill to scratch memory"
        allowed = f"tile.m * tile.n <= {limit * work_items} for {work_items} work-items"
        yield Violation("ck_tile_conv.accumulators", "tile", text(triple(spec.tile)), why, allowed, "a smaller tile")


RULES = rules(
    "ck_tile_conv.",
    (
        check_pipeline,
        check_depthwise,
        check_stream_k,
        check_split_image,
        check_merged_groups,
        check_wave_groups,
        check_padding,
        check_double_smem_buffer,
        check_warp_tile,
        check_wave_k,
        check_workgroup,
        check_copy_pattern,
        check_cshuffle_repeat,
        check_lds,
        check_interwave_weight,
        check_accumulators,
    ),
)
"""Every rule that CK Tile adds to the common ones."""
