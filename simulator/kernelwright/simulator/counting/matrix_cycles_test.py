"""Clocks of matrix instructions against the peak rates of data sheets, which architecture files have."""

from __future__ import annotations

import pytest

from kernelwright.files import arch_files
from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.simulator.code import matrix_shapes
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.counting.lines import line_of

SIMDS = {"cdna": 4, "rdna3": 2, "rdna4": 2}  # of a compute unit
RATES = {"f16": "fp16", "bf16": "bf16", "i8": "int8", "iu8": "int8", "fp8": "fp8", "bf8": "fp8", "f32": "fp32"}
HALF_RATE = {("gfx950", "v_mfma_f32_32x32x8_f16"), ("gfx950", "v_mfma_f32_16x16x16_f16")}
HALF_RATE |= {("gfx950", "v_mfma_f32_32x32x8_bf16"), ("gfx950", "v_mfma_f32_16x16x16_bf16")}


def known(arch: str) -> list[tuple[str, int]]:
    names = matrix_shapes.SHAPES[TARGETS[arch].instructions]
    clocks = [(name, instruction_set(TARGETS[arch].instructions).matrix_clocks(name)) for name in names]
    return [(name, cycles) for name, cycles in clocks if cycles]


@pytest.mark.parametrize("arch", TARGETS)
def test_clocks_are_those_of_the_peak_rate(arch: str) -> None:
    raw, _ = arch_files.read(arch)
    target = TARGETS[arch]
    assert len(known(arch)) >= 3
    for name, cycles in known(arch):
        shape = matrix_shapes.SHAPES[target.instructions][name]
        operations = 2 * shape.m * shape.n * shape.k * shape.blocks
        rate = raw["flops_per_clock_per_cu"][RATES[shape.a]]
        older = (arch, name) in HALF_RATE or (arch == "gfx950" and shape.a in ("fp8", "bf8", "i8") and shape.k <= 32)
        slow = 2 if older and operations < 2 * 32 * 32 * 32 else 1
        assert operations * SIMDS[target.tables] == cycles * rate // slow, name


@pytest.mark.parametrize(("cbsz", "blgp", "clocks"), [(0, 1, 64), (4, 4, 32), (2, 4, 32), (4, 0, 64)])
def test_operands_of_four_and_six_bits_take_half_the_time(cbsz: int, blgp: int, clocks: int) -> None:
    name = "v_mfma_f32_32x32x64_f8f6f4"
    line = line_of(Instruction(0, 8, "", name, {}, {"cbsz": cbsz, "blgp": blgp}))
    assert instruction_set("gfx950").matrix_clocks(line.name, line.narrow) == clocks


def test_an_instruction_without_a_source_has_none() -> None:
    assert instruction_set("gfx942").matrix_clocks("v_mfma_f64_16x16x4_f64") is None
    assert instruction_set("gfx1201").matrix_clocks("v_wmma_i32_16x16x32_iu4") is None
    assert instruction_set("gfx942").matrix_clocks("v_mfma_f32_32x32x16_f16") is None
