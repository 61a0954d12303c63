"""How CK Tile spreads the copies of an implicit GEMM's operands over the work-items, in vectors fixed by the spec."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Triple
from kernelwright.codegen.backends.ck_tile_copy import Copy
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.operations.convolution.spec import ConvEpilogue, ConvPipeline, Direction, GroupedConvSpec

_TWO_REGISTER_TILES = (ConvPipeline.COMPV4, ConvPipeline.COMPV6)

# Whether K is contiguous in memory, for A and for B.
_ALONG_K = {
    Direction.FORWARD: (True, True),
    Direction.BACKWARD_DATA: (True, False),
    Direction.BACKWARD_WEIGHT: (False, False),
}


def copies(spec: GroupedConvSpec, wave_size: int) -> Iterator[tuple[Copy, str]]:
    """Yield the copies of A and B from memory, and of C to memory if through LDS; each with its vector field."""
    tile = spec.tile
    for what, field, along_k, extent in (
        ("copying A", "a", _ALONG_K[spec.direction][0], tile.m),
        ("copying B", "b", _ALONG_K[spec.direction][1], tile.n),
    ):
        rows, row = (extent, tile.k) if along_k else (tile.k, extent)
        yield Copy(what, rows, row, getattr(spec.vector, field)), field
    if spec.epilogue is ConvEpilogue.CSHUFFLE:
        rows, row = shuffle_extent(spec, wave_size)
        yield Copy("storing C", rows, row, spec.vector.c), "c"


def shuffle_extent(spec: GroupedConvSpec, wave_size: int) -> tuple[int, int]:
    """Return the rows and columns of C that pass through LDS at a time (cshuffle_epilogue.hpp)."""
    rows, columns = spec.wave.m * spec.warp_tile.m, spec.wave.n * spec.warp_tile.n
    per_lane = spec.warp_tile.m * spec.warp_tile.n // wave_size
    repeat = min(max(1, spec.vector.c // max(1, per_lane)), max(1, spec.tile.m // rows))
    return (rows * repeat, columns) if spec.tile.m % (rows * repeat) == 0 else (rows, columns)


def lds_bytes(spec: GroupedConvSpec, wave_size: int) -> int:
    """The bytes of all LDS buffers: the larger of a stage of A and B and the epilogue's buffer, once or twice."""
    stage = spec.tile.k * (spec.tile.m + spec.tile.n) * ELEMENT_BYTES[spec.dtype]
    rows, columns = shuffle_extent(spec, wave_size)
    stored = ELEMENT_BYTES[DType.FP32 if spec.two_stage else spec.dtype]
    store = rows * columns * stored if spec.epilogue is ConvEpilogue.CSHUFFLE else 0
    return max(stage, store) * (2 if spec.pipeline is ConvPipeline.COMPV4 else 1)


def accumulator_limit(spec: GroupedConvSpec, waves_per_simd: int) -> int:
    """Return the accumulators per work-item that do not spill, where a SIMD holds at least ``waves_per_simd`` waves.

    A lane has 512 registers for the waves of its SIMD. Half may be accumulators where operands are copied unchanged, in
    rows of at most 64 bytes that four waves share, else a quarter; half as many where a pipeline holds two tiles of
    operands. These bounds were measured for GEMM kernels.
    """
    waves = spec.wave.m * spec.wave.n * spec.wave.k
    sharing = max(waves_per_simd, -(-waves // 4))
    tiles = 2 if spec.pipeline in _TWO_REGISTER_TILES else 1
    row_bytes = spec.tile.k * ELEMENT_BYTES[spec.dtype]
    lean = spec.direction is Direction.FORWARD and row_bytes <= 64 and waves >= 4
    return min(256 // sharing // tiles, 256 if lean else 128)


def transposing_read_exists(tile: Triple, dtype: DType) -> bool:
    """Whether 16-bit operands can be read transposed from LDS, 8 bytes at a time: a lane's operand is one or two reads.

    See GetBlockGemm in gemm_universal_pipeline_ag_bg_cr_policy.hpp; fp32 is never transposed (load_tile_transpose.hpp).
    """
    reads = tile[1] * tile[2] // 64 * ELEMENT_BYTES[dtype] // 8
    return ELEMENT_BYTES[dtype] == 2 and reads in (1, 2)


def nearest_vector(spec: GroupedConvSpec, field: str, wave_size: int) -> str:
    """Return the vector of one operand that is closest to the spec's and can be copied; "" if there is none."""
    asked, waves = getattr(spec.vector, field), spec.wave.m * spec.wave.n
    for vector in sorted((1, 2, 4, 8), key=lambda one: abs(one - asked)):
        other = spec.model_copy(update={"vector": spec.vector.model_copy(update={field: vector})})
        if not any(copy.problem(wave_size, waves) for copy, name in copies(other, wave_size) if name == field):
            return str(vector)
    return ""
