"""Static counts of shipped kernels are those that are executed; conflicts of LDS are those that layouts explain."""

from __future__ import annotations

from dataclasses import asdict
from math import prod

import pytest

from gemm.amd.shipped import ARCHS, code_objects, library
from gemm.amd.simulated import Bench, Case
from gemm.amd.variants import is_plain
from kernelwright.dispatch import KernelEntry
from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.files.counts.loops import main_loop
from kernelwright.files.counts.mix import mix_of
from kernelwright.simulator import Counts, configure
from kernelwright.simulator.code.object_file import CodeObject
from kernelwright.simulator.counting.lines import line_of, lines_of
from kernelwright.simulator.counting.static import count_kernel, instructions_of

PLAIN = [(arch, kernel.name) for arch in ARCHS for kernel in library(arch).kernels if is_plain(kernel)]
K_TILES = 8  # even and large enough for the main loop of every pipeline


def entry(arch: str, name: str) -> KernelEntry:
    return next(kernel for kernel in library(arch).kernels if kernel.name == name)


def code_of(arch: str, kernel: KernelEntry) -> tuple[CodeObject, str]:
    """The code object of a kernel, and the function that multiplies."""
    for _, code in code_objects(arch):
        for symbol in code.kernels:
            if kernel.identity[:16] in symbol and symbol.endswith("_gemm"):
                return code, symbol
    raise AssertionError(f"no code of {kernel.name}")


def count(arch: str, kernel: KernelEntry, case: Case) -> Counts:
    counts = Counts()
    with configure(counts=counts):
        Bench(library(arch), kernel).run(case)
    return counts


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("arch", "name"), PLAIN)
def test_a_turn_of_the_main_loop_executes_what_is_counted(arch: str, name: str) -> None:
    kernel = entry(arch, name)
    if kernel.spec.get("split_k"):
        pytest.skip("its last launch adds slices up")
    tile = kernel.spec["tile"]
    counts = count(arch, kernel, Case(tile["m"], tile["n"], K_TILES * tile["k"]))
    code, symbol = code_of(arch, kernel)
    static = count_kernel(code, code.kernel(symbol))
    function = instructions_of(code, code.kernel(symbol))
    loop = main_loop(lines_of(function))
    assert loop is not None and static.loop is not None
    executed = [(line_of(function[at]), counts.executed.get(function[at].pc, 0)) for at in loop]
    (turns,) = {times for _, times in executed}  # no branch leaves out a part of it
    waves = prod(kernel.spec["wave"].values())
    assert turns >= waves and turns % waves == 0
    mix = mix_of(executed, instruction_set(code.target.instructions))
    assert (mix.vector, mix.scalar) == (static.loop.vector * turns, static.loop.scalar * turns)
    assert mix.matrix_cycles == (static.loop.matrix_cycles or 0) * turns > 0
    assert mix.lds == {access: times * turns for access, times in static.loop.lds.items()}
    assert mix.memory == {access: times * turns for access, times in static.loop.memory.items()}
    assert counts.mix.instructions >= static.loop.instructions * turns
    # The manifest has the counts of the compiler's assembly, and conflicts that are computed without a launch.
    stated = (kernel.resources or {})["counts"]
    added = stated["loop"]["conflict_cycles"]
    turn = {key: value for key, value in stated["loop"].items() if not key.startswith("conflict")}
    assert (turn, stated["outside"]) == (asdict(static.loop), asdict(static.outside))
    measured = sum(counts.lds[function[at].pc].conflicts for at in loop if function[at].pc in counts.lds)
    assert added is not None and measured == added * turns


Accesses = set[tuple[str, int, bool]]
CONFLICTS: dict[str, Accesses] = {
    # Rows of 128 bytes fill the banks.
    "gemm_fp16_rcr_compv3_cshuffle_intrawave_True_True_True_False_128x128x64_2x2x1_32x32x16": {
        ("ds_write_b128", 8, False),
        ("ds_read_b128", 8, False),
    },
    # Rows of 64 bytes: the 8 lanes of a phase that writes 16 bytes each meet in pairs.
    "gemm_bf16_rcr_compv4_cshuffle_intrawave_True_True_True_False_128x128x32_2x2x1_32x32x16": {
        ("ds_write_b128", 8 * 2, True),
        ("ds_read_b128", 8, False),
    },
    # Columns are written: the 32 lanes of a phase meet by fours.
    "gemm_bf16_crr_compv3_cshuffle_intrawave_True_True_True_False_128x128x32_2x2x1_32x32x8": {
        ("ds_write_b32", 2 * 4, True),
        ("ds_read_b64", 4, False),
    },
}
"""Kernels of gfx942: what the main loop accesses, the clocks of one access, and whether lanes of a phase conflict."""


@pytest.mark.parametrize("name", CONFLICTS if "gfx942" in ARCHS else ())
def test_conflicts_of_the_main_loop(name: str) -> None:
    kernel = entry("gfx942", name)
    tile = kernel.spec["tile"]
    counts = count("gfx942", kernel, Case(tile["m"], tile["n"], K_TILES * tile["k"]))
    code, symbol = code_of("gfx942", kernel)
    function = instructions_of(code, code.kernel(symbol))
    accesses = [function[at] for at in main_loop(lines_of(function)) or () if function[at].pc in counts.lds]
    each = {
        (one.name, counts.lds[one.pc].clocks / counts.executed[one.pc], counts.lds[one.pc].conflicts > 0)
        for one in accesses
    }
    assert each == CONFLICTS[name]
