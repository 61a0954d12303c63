"""Shipped kernels keep to the registers of their descriptors, and fault when a descriptor allocates fewer."""

from __future__ import annotations

import pytest

from gemm.amd.patched import with_registers
from gemm.amd.removal import Subject
from gemm.amd.shipped import ARCHS, code_objects, library
from kernelwright.simulator.checks.allocation import beyond_allocation
from kernelwright.simulator.code.decode import decode
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Fault


@pytest.mark.parametrize("arch", ARCHS)
def test_every_static_instruction_keeps_to_its_allocation(arch: str) -> None:
    for _, code in code_objects(arch):
        for name, kernel in code.kernels.items():
            function = code.function_at(kernel.entry - code.text_start)
            for instruction in decode(code.text, code.target, function.address, function.address + function.nbytes):
                outside = beyond_allocation(instruction, code.target, kernel.registers)
                assert outside is None, f"{name}: pc {instruction.pc:#x}: {instruction} {outside}"


def subject(arch: str) -> Subject:
    return Subject(arch, next(kernel.name for kernel in library(arch).kernels if "fp16_rcr_compv3" in kernel.name))


@pytest.mark.parametrize("arch", ARCHS)
def test_half_the_registers_are_a_fault(arch: str) -> None:
    whole = subject(arch)
    allocated = whole.code.kernels[whole.symbol].registers
    half = allocated.total // 16 * 8
    with pytest.raises(Fault, match=f"uses v[0-9]+ .*allocation: {half} VGPRs"):
        whole.launch(with_registers(whole.image, whole.code, whole.symbol, vectors=half), 1)


@pytest.mark.parametrize("arch", [arch for arch in ARCHS if TARGETS[arch].cdna])
def test_half_the_accum_offset_is_a_fault(arch: str) -> None:
    whole = subject(arch)
    offset = whole.code.kernels[whole.symbol].registers.accum_offset
    assert offset is not None
    half = offset // 8 * 4
    with pytest.raises(Fault, match=rf"uses v[0-9]+ .*accum_offset {half}\)"):
        whole.launch(with_registers(whole.image, whole.code, whole.symbol, accum_offset=half), 1)
