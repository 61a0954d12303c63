"""The matrix instructions by name: shapes, element types, register counts, and where each element lies.

Layouts (AMD matrix instruction calculator; ISA guides, "MFMA" and "WMMA"), with L = elements of A per lane:

* MFMA, B blocks of M x N x K: A[b][i][k] is element k % L of lane i + M * (b + B * (k / L)); B[b][k][j] is alike, with
  j for i. D (fp32, int32), 32x32: register 16*b + 4*(i/8) + i%4 of lane j + 32*((i/4)%2); 16x16: register 4*b + i%4
  of lane j + 16*(i/4); 4x4: register i of lane j + 4*b. D (fp64), 16x16: pair i/4 of lane j + 16*(i%4); 4x4: lane
  j + 4*b + 16*i.
* WMMA of gfx11 (16x16x16, wave32): lane i % 16 holds all k of row i, lanes 16-31 repeat lanes 0-15. D: register i/2 of
  lane j + 16*(i%2), also if it holds one 16-bit value.
* WMMA of gfx12: A[i][k] is element k % L of lane i + 16*(k/L). D: register i%8 of lane j + 16*(i/8); 16-bit D are
  packed, two rows per register.

A permutation of k that is common to A and B cannot be told from outside, so that only the rows' places matter.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int64]
Family = Literal["mfma", "gfx11", "gfx12"]
BITS = {"f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16}
BITS |= {"i8": 8, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4}


@dataclass(frozen=True)
class Shape:
    """One matrix instruction: ``blocks`` products of (m, k) ``a`` and (k, n) ``b``, added to ``accumulator``."""

    family: Family
    m: int
    n: int
    k: int
    blocks: int
    a: str
    b: str
    accumulator: str

    @property
    def lanes(self) -> int:
        """Lanes of a wave."""
        return 64 if self.family == "mfma" else 32

    @property
    def per_lane(self) -> int:
        """Elements of A (and of B) in each lane."""
        return self.k if self.family == "gfx11" else self.m * self.k * self.blocks // self.lanes

    @property
    def source_registers(self) -> int:
        """Registers of A (and of B)."""
        return max(1, self.per_lane * BITS[self.a] // 32)

    @property
    def result_registers(self) -> int:
        """Registers of C (and of D). gfx11 spends a register on each 16-bit value."""
        bits = 32 if self.family == "gfx11" else BITS[self.accumulator]
        return self.m * self.n * self.blocks * bits // (32 * self.lanes)

    @property
    def registers(self) -> dict[str, int]:
        """Registers of each operand, by its name in the encoding."""
        source, result = self.source_registers, self.result_registers
        return {"src0": source, "src1": source, "src2": result, "vdst": result}

    def source_index(self, rows: Index, blocks: Index) -> Index:
        """Places of A in (register, lane, element of the register) order, flat: [row][k] for rows of given blocks.

        Shape (len(rows), k). B is alike, with columns for rows.
        """
        k = np.arange(self.k)
        lanes = rows[:, None] + self.m * (blocks[:, None] + self.blocks * (k // self.per_lane))
        packed = max(1, 32 // BITS[self.a])
        element = k % self.per_lane
        index: Index = (element // packed * self.lanes + lanes) * packed + element % packed
        return index

    def result_rows(self) -> Index:
        """Row of D in (register, group of lanes that share a row) order, flat, one block.

        For 16-bit results of gfx12 (register, half, group).
        """
        if self.family == "gfx11":
            return np.array([2 * register + group for register in range(8) for group in range(2)])
        if self.family == "gfx12":
            return np.array([register + 8 * group for register in range(8) for group in range(2)])
        if self.accumulator == "f64" or self.m == 4:
            return np.arange(self.m)
        groups = self.lanes // self.n
        registers = self.m // groups
        return np.array(
            [
                8 * (register // 4) + 4 * group + register % 4 if self.m == 32 else 4 * group + register
                for register in range(registers)
                for group in range(groups)
            ]
        )


def _mfma_names() -> dict[str, tuple[int, int, int, int, str, str, str]]:
    """Name → side, side, k, blocks, types of A, B and the accumulator."""
    halves = ((32, 4, 2), (16, 4, 4), (4, 4, 16), (32, 8, 1), (16, 16, 1), (32, 16, 1), (16, 32, 1))
    kinds: list[tuple[str, str, str, str, tuple[tuple[int, int, int], ...]]] = [
        ("f32", "f32", "f32", "f32", ((32, 1, 2), (16, 1, 4), (4, 1, 16), (32, 2, 1), (16, 4, 1))),
        ("f16", "f16", "f16", "f32", halves),
        ("bf16", "bf16", "bf16", "f32", halves),
        ("bf16_k2", "bf16", "bf16", "f32", ((32, 2, 2), (16, 2, 4), (4, 2, 16), (32, 4, 1), (16, 8, 1))),
        ("i8", "i8", "i8", "i32", (*halves, (32, 32, 1), (16, 64, 1))),
        ("xf32", "xf32", "xf32", "f32", ((16, 8, 1), (32, 4, 1))),
        ("f64", "f64", "f64", "f64", ((16, 4, 1), (4, 4, 4))),
        ("f8f6f4", "fp8", "fp8", "f32", ((16, 128, 1), (32, 64, 1))),
    ]
    eights = itertools.product(("fp8", "bf8"), repeat=2)
    kinds += [(f"{a}_{b}", a, b, "f32", ((32, 16, 1), (16, 32, 1))) for a, b in eights]
    by_name = {}
    for name, a, b, accumulator, shapes in kinds:
        for side, k, blocks in shapes:
            many = "" if blocks == 1 else f"_{blocks}b"
            by_name[f"v_mfma_{accumulator}_{side}x{side}x{k}{many}_{name}"] = (side, side, k, blocks, a, b, accumulator)
    return by_name


def _wmma_names(family: str) -> dict[str, tuple[str, str, str, int]]:
    """Name → types of A, B and the accumulator, k."""
    kinds = [("f16", "f32"), ("bf16", "f32"), ("f16", "f16"), ("bf16", "bf16"), ("iu8", "i32"), ("iu4", "i32")]
    by_name = {f"v_wmma_{acc}_16x16x16_{a}": (a, a, acc, 16) for a, acc in kinds}
    if family == "gfx12":
        by_name["v_wmma_i32_16x16x32_iu4"] = ("iu4", "iu4", "i32", 32)
        for a, b in itertools.product(("fp8", "bf8"), repeat=2):
            by_name[f"v_wmma_f32_16x16x16_{a}_{b}"] = (a, b, "f32", 16)
    return by_name


def _exists(name: str, shape: Shape, arch: str) -> bool:
    """Whether an architecture of the CDNA family has the MFMA (LLVM, VOP3PInstructions.td)."""
    registers, many = shape.source_registers, shape.blocks > 1
    if arch == "gfx90a":
        return registers <= (1 if shape.a == "i8" else 2) and shape.a not in ("fp8", "bf8", "xf32")
    old = name.endswith("bf16_k2") or (shape.a == "i8" and not many and registers == 1)
    if arch == "gfx942":
        return registers <= 2 and not old
    return shape.a != "xf32" and not old


_ALL_MFMA = {name: Shape("mfma", *rest) for name, rest in _mfma_names().items()}
_FAMILIES: tuple[tuple[str, Family], ...] = (("gfx1100", "gfx11"), ("gfx1201", "gfx12"))
SHAPES: dict[str, dict[str, Shape]] = {
    arch: {name: shape for name, shape in _ALL_MFMA.items() if _exists(name, shape, arch)}
    for arch in ("gfx90a", "gfx942", "gfx950")
} | {
    arch: {name: Shape(family, 16, 16, k, 1, a, b, acc) for name, (a, b, acc, k) in _wmma_names(family).items()}
    for arch, family in _FAMILIES
}
NAMES = sorted({name for shapes in SHAPES.values() for name in shapes})


def find(name: str, instructions: str) -> Shape | None:
    """The shape of an instruction of an instruction set, or None if it has none of that name."""
    return SHAPES[instructions].get(name)
