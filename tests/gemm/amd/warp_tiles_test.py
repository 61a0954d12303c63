"""Every warp tile and dtype that the architecture files allow is made of matrix instructions that the simulator models.

Their layouts and arithmetic are tested one by one in the simulator's ``matrix_test``.
"""

from __future__ import annotations

import pytest

from kernelwright import arch
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.simulator.code.matrix_shapes import SHAPES, Shape

TYPES = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8": "fp8", "bf8": "bf8"}
TILES = [
    (name, dtypes, tile)
    for name in SHAPES
    for tables in [gemm_section(arch.load(name))]
    for dtypes, tiles in [*tables.warp_tiles.items(), *tables.preshuffle_warp_tiles.items()]
    for tile in tiles
]


def makes(name: str, shape: Shape, types: list[str], tile: tuple[int, int, int]) -> bool:
    """Whether the instruction makes the tile, perhaps in several steps of k."""
    a, b, accumulator = types
    if {a, b} <= {"fp8", "bf8"} and name.endswith("f8f6f4"):
        fits = accumulator == "fp32"
    elif a == "int8":
        fits = shape.a == ("i8" if shape.family == "mfma" else "iu8") and accumulator == "int32"
    else:
        fits = (shape.a, shape.b, shape.accumulator) == (TYPES[a], TYPES[b], TYPES[accumulator])
    m, n, k = tile
    wide = {(shape.m, shape.n)}
    if shape.blocks == 16:  # with A broadcast to all blocks, whose B lie side by side; or the other way round
        wide = {(shape.m, 16 * shape.n), (16 * shape.m, shape.n)}
    return fits and (m, n) in wide and k % shape.k == 0


@pytest.mark.parametrize(("name", "dtypes", "tile"), TILES)
def test_an_instruction_makes_the_tile(name: str, dtypes: str, tile: tuple[int, int, int]) -> None:
    instructions = [key for key, shape in SHAPES[name].items() if makes(key, shape, dtypes.split("_"), tile)]
    assert instructions, f"{name}: nothing makes {dtypes} {tile}"


def test_what_no_instruction_makes_is_seen() -> None:
    shapes = SHAPES["gfx1100"].items()
    assert not any(makes(key, shape, ["fp8", "fp8", "fp32"], (16, 16, 16)) for key, shape in shapes)
    assert not any(makes(key, shape, ["fp16", "fp16", "fp32"], (32, 32, 16)) for key, shape in shapes)
