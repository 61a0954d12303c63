"""What CK Tile refuses to compile, compiles wrongly, or compiles into spills: beyond the architecture's tables.

Sources name files of the pinned CK Tile (amd-aiter 0.1.7.post2.dev18) below ``ck_tile/``, or AMD's issue tracker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kernelwright.arch import Arch, Triple
from kernelwright.codegen.backends.ck_tile_waves import most_waves_per_simd
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType, Layout
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.constraints import ck_tile_copies as copies
from kernelwright.codegen.operations.gemm.constraints import ck_tile_variants as variants
from kernelwright.codegen.operations.gemm.spec import Epilogue, Extent, GemmSpec, Pipeline
from kernelwright.codegen.violations import Rule, Violation

_MAX_WORKGROUP = 1024
_TWO_LDS_BUFFERS = (Pipeline.COMPV4, Pipeline.COMP_ASYNC, Pipeline.PRESHUFFLEV2)
_TWO_REGISTER_TILES = (Pipeline.COMPV4, Pipeline.COMPV6, Pipeline.COMP_ASYNC, Pipeline.PRESHUFFLEV2)
_PLAIN_PIPELINES = (Pipeline.MEM, Pipeline.COMPV3, Pipeline.COMPV4, Pipeline.COMPV6)
_PIPELINES = (*_PLAIN_PIPELINES, Pipeline.COMP_ASYNC, Pipeline.PRESHUFFLEV2, Pipeline.NARROW)


def warp_tiles(spec: GemmSpec, arch: Arch) -> tuple[Triple, ...]:
    """The warp tiles that become matrix instructions, among those that CK Tile's dispatcher knows for A's dtype."""
    tiles = gemm_section(arch).instruction_tiles.get(spec.dtype_a, ())
    if arch.lds_transposing_loads and spec.layout is not Layout.RCR:
        tiles = tuple(tile for tile in tiles if _transposing_read_exists(tile, ELEMENT_BYTES[spec.dtype_a]))
    return tiles


def _transposing_read_exists(tile: Triple, element_bytes: int) -> bool:
    """Whether LDS can be read transposed, 8 bytes at a time: a lane's operand must consist of such reads.

    GetBlockGemm in gemm_universal_pipeline_ag_bg_cr_policy.hpp asks for one, two or four reads; the dispatcher has two
    for 16-bit floats and four for the 8-bit floats' longest tiles.
    """
    reads = tile[1] * tile[2] // 64 * element_bytes // 8
    return reads == 1 or (reads == 2 and element_bytes == 2) or (reads == 4 and element_bytes == 1)


def _symbols(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.pipeline not in _PIPELINES:
        why = "this backend has no such pipeline"
        yield _violation("pipeline", "pipeline", spec.pipeline, why, ", ".join(_PIPELINES), Pipeline.COMPV3)
    if spec.pipeline is Pipeline.NARROW and ELEMENT_BYTES[spec.dtype_a] != 2:
        why = "loads of single elements were proven for 16-bit floats only"
        yield _violation("pipeline", "dtype_a", spec.dtype_a, why, "fp16, bf16", DType.FP16)
    if spec.num_wave_groups != 1:
        why = "only pipeline v5 has wave groups, and the compiler does not finish on it"
        yield _violation("pipeline", "num_wave_groups", str(spec.num_wave_groups), why, "1", "1")


def _dtypes(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    section = gemm_section(arch)
    offered = ", ".join(dtype for dtype in section.instruction_tiles if dtype not in section.emulated_dtypes)
    if set(section.emulated_dtypes) & {spec.dtype_a, spec.dtype_b}:
        why = (
            "CK Tile emulates it with fp32 matrix instructions here and stores their bits as integers: wrong results"
            " (WarpGemmAttributeMfmaImpl_i32_32x32x16_i8 in warp_gemm_attribute_mfma_impl.hpp)"
        )
        yield _violation("dtypes", "dtype_a", spec.dtype_a, why, offered, DType.FP16)
    if {DType.FP8, DType.BF8} & {spec.dtype_a, spec.dtype_b} - set(section.instruction_tiles):
        why = f"{arch.name} has no matrix instruction for 8-bit floats: CK Tile emulates them or computes nothing"
        yield _violation("dtypes", "dtype_a", spec.dtype_a, why, offered, DType.FP16)


def _warp_tile(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    tile = _triple(spec.warp_tile)
    legal = warp_tiles(spec, arch)
    if tile in legal or spec.dtype_a not in gemm_section(arch).instruction_tiles:
        return
    if not legal:
        why = f"{arch.name} cannot transpose {spec.dtype_a} while it reads LDS (load_tile_transpose.hpp)"
        yield _violation("warp_tile", "layout", spec.layout, why, Layout.RCR, Layout.RCR)
        return
    why = "CK Tile's dispatcher (ops/gemm/warp/warp_gemm_dispatcher.hpp) has no such matrix instruction here"
    if arch.wave_size == 32:
        why = (
            "RDNA has only 16x16x16; CK Tile compiles others to kernels without a matrix instruction, which do nothing"
        )
    nearest = min(legal, key=lambda item: sum(abs(a - b) for a, b in zip(item, tile, strict=True)))
    yield _violation("warp_tile", "warp_tile", _text(tile), why, ", ".join(map(_text, legal)), _text(nearest))


def _wave_k(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.wave.k != 1:
        why = "no pipeline adds up waves along K: the epilogue counts wave.m * wave.n waves (cshuffle_epilogue.hpp)"
        yield _violation("wave_k", "wave.k", str(spec.wave.k), why, "1", "1")


def _workgroup(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    size = _waves(spec) * arch.wave_size
    if size > _MAX_WORKGROUP:
        why = (
            f"{_waves(spec)} waves of {arch.wave_size} are {size} work-items, a workgroup has at most {_MAX_WORKGROUP}"
        )
        legal = [
            wave for wave in gemm_section(arch).waves if wave[0] * wave[1] * wave[2] * arch.wave_size <= _MAX_WORKGROUP
        ]
        nearest = max(legal, key=lambda wave: wave[0] * wave[1] * wave[2], default=(1, 1, 1))
        yield _violation(
            "workgroup", "wave", _text(_triple(spec.wave)), why, ", ".join(map(_text, legal)), _text(nearest)
        )


def _cshuffle_repeat(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.epilogue is not Epilogue.CSHUFFLE:
        return
    for axis, tile, wave, warp in (
        ("m", spec.tile.m, spec.wave.m, spec.warp_tile.m),
        ("n", spec.tile.n, spec.wave.n, spec.warp_tile.n),
    ):
        repeat = tile // (wave * warp)
        if warp == 32 and repeat > 1 and repeat % 2 == 1:
            why = f"each wave stores {repeat} warp tiles of 32 along {axis}: an odd number is stored wrongly (CK #9684)"
            lower, upper = (repeat - 1) * wave * warp, (repeat + 1) * wave * warp
            limits = gemm_section(arch).tile.m if axis == "m" else gemm_section(arch).tile.n
            allowed = f"an even number of warp tiles per wave, or epilogue {Epilogue.DEFAULT}"
            nearest = str(upper if upper in limits.values else lower)
            yield _violation("cshuffle_repeat", f"tile.{axis}", str(tile), why, allowed, nearest)


def _copy_patterns(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if arch.wave_size * _waves(spec) == 0 or spec.wave.k != 1:
        return
    for copy in copies.copies(spec, arch.wave_size):
        problem = copy.problem(arch.wave_size, _waves(spec))
        if problem:
            allowed = "every wave copies whole rows, all work-items the same number of vectors"
            nearest = copies.nearest_tile(spec, arch) or "a tile of powers of two"
            yield _violation(
                "copy_pattern", "tile", _text(_triple(spec.tile)), f"{copy.what}: {problem}", allowed, nearest
            )
            return


def _lds_parts(spec: GemmSpec, arch: Arch) -> tuple[int, int, int]:
    """Return the number of LDS buffers, and the bytes of A and B, and of the epilogue, that each must hold."""
    rows_b = 0 if variants.preshuffles(spec) else spec.tile.n  # a permuted B goes straight to registers
    stage = spec.tile.k * (spec.tile.m * ELEMENT_BYTES[spec.dtype_a] + rows_b * ELEMENT_BYTES[spec.dtype_b])
    store = copies.shuffle_bytes(spec, arch.wave_size) if spec.epilogue is Epilogue.CSHUFFLE else 0
    return 2 if spec.pipeline in _TWO_LDS_BUFFERS else 1, stage, store


def _waves_per_simd(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    buffers, stage, store = _lds_parts(spec, arch)
    used = buffers * max(stage, store)
    most = most_waves_per_simd(arch, used, _waves(spec))
    if used <= arch.lds_bytes and spec.k_block_per_cu > most:
        why = (
            f"a workgroup of {_waves(spec)} waves takes {used} bytes of LDS, which leaves room for {most} waves on a"
            f" SIMD: the compiler fails (failed to meet occupancy target)"
        )
        yield _violation("waves_per_simd", "k_block_per_cu", str(spec.k_block_per_cu), why, f"1 to {most}", str(most))


def _lds(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    buffers, stage, store = _lds_parts(spec, arch)
    used = buffers * max(stage, store)
    if used > arch.lds_bytes:
        why = (
            f"{buffers} x max(A and B: {stage} bytes, epilogue: {store} bytes) of LDS; {arch.name} has {arch.lds_bytes}"
        )
        fitting = [
            k
            for k in gemm_section(arch).tile.k
            if k % spec.warp_tile.k == 0 and stage // spec.tile.k * k * buffers <= arch.lds_bytes
        ]
        nearest = f"tile.k = {max(fitting)}" if fitting and buffers * store <= arch.lds_bytes else "a smaller tile"
        yield _violation("lds", "tile", _text(_triple(spec.tile)), why, f"at most {arch.lds_bytes} bytes", nearest)


def accumulator_limit(spec: GemmSpec, arch: Arch) -> int:
    """Return the accumulators per work-item that compile without scratch spills, as measured.

    A CDNA SIMD has 512 registers per lane for its waves; half may be accumulators if the other half holds only rows of
    64 bytes of A and B, shared by four waves and copied unchanged (500 registers of fp16 rcr), else a quarter: fp8 rrr,
    which is transposed, spilled 106, rows of 128 bytes 273, and 128x128 in one wave 62. RDNA waves address 256 and need
    more of them for operands, which WMMA on gfx11 holds twice: a quarter. Pipelines that keep two register tiles of A
    and B (compv4, compv6, comp_async) leave half as many.
    """
    tiles = 2 if spec.pipeline in _TWO_REGISTER_TILES else 1
    if arch.wave_size == 32:
        return 64 // tiles
    waves_per_simd = max(spec.k_block_per_cu, -(-_waves(spec) // 4))
    row_bytes = spec.tile.k * ELEMENT_BYTES[spec.dtype_a]
    lean = spec.layout is Layout.RCR and row_bytes <= 64 and _waves(spec) >= 4
    return min(256 // waves_per_simd // tiles, 256 if lean else 128)


def _accumulators(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    work_items = _waves(spec) * arch.wave_size
    count, limit = spec.tile.m * spec.tile.n // work_items, accumulator_limit(spec, arch)
    if count > limit:
        why = f"{count} accumulators per work-item leave too few registers: the kernel would spill to scratch memory"
        allowed = f"tile.m * tile.n <= {limit * work_items} for {work_items} work-items"
        yield _violation(
            "accumulators", "tile", _text(_triple(spec.tile)), why, allowed, _halved(spec, limit * work_items)
        )


def _comp_async(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    if spec.pipeline is not Pipeline.COMP_ASYNC:
        return
    if not arch.wide_direct_lds_loads:
        why = f"{arch.name} has no loads of 16 bytes straight into LDS (amd_buffer_addressing_builtins.hpp)"
        yield _violation("comp_async", "pipeline", spec.pipeline, why, ", ".join(_PLAIN_PIPELINES), Pipeline.COMPV4)
    if spec.layout is not Layout.RCR:
        why = "direct loads into LDS cannot transpose, and only rcr needs no transposition"
        yield _violation("comp_async", "layout", spec.layout, why, Layout.RCR, Layout.RCR)
    if spec.pad.k:
        why = "direct loads into LDS leave padded elements of K as they were, and those are multiplied"
        yield _violation("comp_async", "pad.k", "True", why, "False", "False")
    if ELEMENT_BYTES[spec.dtype_a] != 2:
        why = "the pipeline was proven for 16-bit floats only"
        yield _violation("comp_async", "dtype_a", spec.dtype_a, why, "fp16, bf16", DType.FP16)


def _rule(id: str, reason: str, check: Callable[[GemmSpec, Arch], Iterable[Violation]]) -> Rule:
    return Rule(f"ck_tile.{id}", reason, check)


RULES: tuple[Rule, ...] = (
    _rule("pipeline", "Only what this backend maps onto CK Tile.", _symbols),
    _rule(
        "preshuffle",
        "Preshuffled weights are column-major; with others the kernel compiles and is wrong.",
        variants.check_preshuffle,
    ),
    _rule("dtypes", "Dtypes without a matrix instruction are emulated, wrongly or slowly, without a word.", _dtypes),
    _rule("mixed_dtypes", "A and B are multiplied as one dtype, but for fp8 with bf8.", variants.check_mixed_dtypes),
    _rule(
        "warp_tile", "A warp tile without a matrix instruction does not compile, or compiles to nothing.", _warp_tile
    ),
    _rule("wave_k", "Waves share a tile along M and N only.", _wave_k),
    _rule("workgroup", "A workgroup has at most 1024 work-items.", _workgroup),
    _rule("cshuffle_repeat", "CShuffle stores an odd number of 32-wide warp tiles per wave wrongly.", _cshuffle_repeat),
    _rule(
        "copy_pattern", "Copies of A, B and C are spread evenly over the work-items, in whole vectors.", _copy_patterns
    ),
    _rule("lds", "All LDS buffers together fit, the epilogue's included.", _lds),
    _rule("waves_per_simd", "LDS has room for the workgroups that are to run at once.", _waves_per_simd),
    _rule("accumulators", "Too many accumulators per work-item spill to scratch memory.", _accumulators),
    _rule("comp_async", "Direct loads into LDS have an architecture, a layout and no padding along K.", _comp_async),
    _rule("shared_k", "Shares of K are whole tiles, counted when the kernel is built.", variants.check_shared_k),
    _rule("variants", "Some variants exclude each other.", variants.check_variants),
)
"""Every rule that CK Tile adds to the common ones."""


def _violation(rule: str, field: str, value: str, why: str, allowed: str, nearest: str) -> Violation:
    return Violation(f"ck_tile.{rule}", field, str(value), why, str(allowed), str(nearest))


def _waves(spec: GemmSpec) -> int:
    return spec.wave.m * spec.wave.n * spec.wave.k


def _triple(extent: Extent) -> Triple:
    return (extent.m, extent.n, extent.k)


def _text(triple: Triple) -> str:
    return "x".join(map(str, triple))


def _halved(spec: GemmSpec, most: int) -> str:
    m, n = spec.tile.m, spec.tile.n
    while m * n > most and max(m, n) > 16:
        m, n = (m // 2, n) if m >= n else (m, n // 2)
    return _text((m, n, spec.tile.k))
