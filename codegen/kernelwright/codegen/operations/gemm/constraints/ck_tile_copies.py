"""How CK Tile spreads the copies of A, B and C over the work-items of a workgroup.

The arithmetic of GetGlobalVectorLoadSize in gemm_universal_pipeline_ag_bg_cr_policy.hpp and of cshuffle_epilogue.hpp.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.backends.ck_tile_copy import Copy
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType, Layout
from kernelwright.codegen.operations.gemm.spec import Epilogue, Extent, GemmSpec, Pipeline

_VECTOR_BYTES = 16
_POWERS = (16, 32, 64, 128, 256)


def copies(spec: GemmSpec, wave_size: int) -> Iterator[Copy]:
    """Yield the copies that a spec implies: A and B from memory, and C to memory if it goes through LDS."""
    tile, lanes = spec.tile, spec.wave.m * spec.wave.n * spec.wave.k * wave_size
    a_row, b_row = _contiguous_k(spec.layout)
    operands: tuple[tuple[str, bool, int, DType], ...]
    operands = (("A", a_row, tile.m, spec.dtype_a), ("B", b_row, tile.n, spec.dtype_b))
    if spec.preshuffle:  # B goes straight to registers; A always in the widest loads
        operands = ()
        yield Copy("copying A", tile.m, tile.k, _VECTOR_BYTES // ELEMENT_BYTES[spec.dtype_a], exact=True)
    for what, along_k, extent, dtype in operands:
        rows, row = (extent, tile.k) if along_k else (tile.k, extent)
        widest = load_vector(ELEMENT_BYTES[dtype], row, extent * tile.k // lanes)
        yield Copy(f"copying {what}", rows, row, 1 if spec.pipeline is Pipeline.NARROW else widest)
    if spec.epilogue is Epilogue.CSHUFFLE:
        rows, row = _shuffle_extent(spec, wave_size)
        yield Copy("storing C", rows, row, store_vector(spec))


def load_vector(element_bytes: int, row: int, per_lane: int) -> int:
    """The elements of one global load: the widest of 16, 8, 4, 2 bytes that divides the row and a work-item's share."""
    for width in (16, 8, 4, 2):
        elements = width // element_bytes
        if (width >= 8 or element_bytes >= width) and elements and row % elements == 0 and per_lane % elements == 0:
            return elements
    return 1


def store_vector(spec: GemmSpec) -> int:
    """Return the elements of C that the CShuffle epilogue stores at once."""
    return min(spec.wave.n * spec.warp_tile.n, _VECTOR_BYTES // ELEMENT_BYTES[stored_dtype(spec)])


def stored_dtype(spec: GemmSpec) -> DType:
    """Return the dtype that the epilogue writes: that of C, or of the partial sums of a K slice."""
    return spec.dtype_acc if spec.split_k else spec.dtype_c


def shuffle_bytes(spec: GemmSpec, wave_size: int) -> int:
    """Return the LDS bytes that the CShuffle epilogue needs for one pass."""
    rows, row = _shuffle_extent(spec, wave_size)
    return rows * row * ELEMENT_BYTES[stored_dtype(spec)]


def nearest_tile(spec: GemmSpec, arch: Arch) -> str:
    """Return the legal tile of powers of two closest to the spec's, "" if there is none."""
    wave, warp, waves = spec.wave, spec.warp_tile, spec.wave.m * spec.wave.n
    candidates = []
    for m, n, k in itertools.product(_POWERS, _POWERS, _POWERS):
        if m % (wave.m * warp.m) or n % (wave.n * warp.n) or k % warp.k or k > 128:
            continue
        other = spec.model_copy(update={"tile": Extent(m=m, n=n, k=k)})
        if not any(copy.problem(arch.wave_size, waves) for copy in copies(other, arch.wave_size)):
            candidates.append((abs(m - spec.tile.m) + abs(n - spec.tile.n) + abs(k - spec.tile.k), m, n, k))
    return "x".join(map(str, min(candidates)[1:])) if candidates else ""


def _contiguous_k(layout: Layout) -> tuple[bool, bool]:
    return layout.value[0] == "r", layout.value[1] == "c"


def _shuffle_extent(spec: GemmSpec, wave_size: int) -> tuple[int, int]:
    """Return the rows and columns of C that pass through LDS at a time."""
    rows, columns = spec.wave.m * spec.warp_tile.m, spec.wave.n * spec.warp_tile.n
    per_lane = spec.warp_tile.m * spec.warp_tile.n // wave_size
    repeat = min(max(1, store_vector(spec) // max(1, per_lane)), max(1, spec.tile.m // rows))
    return (rows * repeat, columns) if spec.tile.m % (rows * repeat) == 0 else (rows, columns)
