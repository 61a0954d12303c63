"""Registers beyond those that the kernel descriptor allocates are a fault, whatever checks are on."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Fault
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object

END: Line = ("SOPP", "s_endpgm")


def move(register: str) -> Line:
    return ("VOP1", "v_mov_b32", {"vdst": register, "src0": 1})


def to_accumulator(number: int) -> Line:
    return ("VOP3P", "v_accvgpr_write", {"vdst": f"v{number}", "src0": 1})


def set_scalar(register: str) -> Line:
    return ("SOP1", "s_mov_b32", {"sdst": register, "ssrc0": 1})


def launch(arch: str, lines: list[Line], checks: Checks = Checks(), **sizes: Any) -> None:  # noqa: B008
    image = make_object(arch, {"k": Kernel(assemble_text(arch, [*lines, END]), **sizes)})
    Simulator(checks=checks).launch(image, "k", grid=(1, 1, 1), block=(1, 1, 1), arguments=bytes(8), buffers=[])


def refused(arch: str, lines: list[Line], **sizes: int) -> Fault:
    for checks in (Checks(uninitialised=True, races=True, waits=True), Checks()):
        with pytest.raises(Fault) as caught:
            launch(arch, lines, checks, **sizes)
    return caught.value


CDNA = ["gfx90a", "gfx942", "gfx950"]
EVERY = [*CDNA, "gfx1100", "gfx1201"]


@pytest.mark.parametrize("arch", EVERY)
def test_half_the_vgprs_are_a_fault_that_names_register_and_allocation(arch: str) -> None:
    lines = [move("v0"), move("v63"), move("v64")]
    launch(arch, lines, vectors=72)
    fault = refused(arch, lines, vectors=64)
    assert fault.pc == 8 and fault.instruction.startswith("v_mov_b32 vdst=v64")
    assert fault.reason.startswith("uses v64 beyond the kernel descriptor's allocation: 64 VGPRs")


@pytest.mark.parametrize("arch", CDNA)
def test_a_wrong_accum_offset_is_a_fault(arch: str) -> None:
    lines = [move("v31"), to_accumulator(31)]
    launch(arch, lines, vectors=64, accum_offset=32)
    fault = refused(arch, lines, vectors=64, accum_offset=28)
    assert fault.reason == (
        "uses v31 beyond the kernel descriptor's allocation: "
        "28 VGPRs, 36 AGPRs (64 vector registers, accum_offset 28) and 102 SGPRs"
    )
    fault = refused(arch, lines, vectors=64, accum_offset=36)
    assert fault.reason.startswith("uses a31 beyond the kernel descriptor's allocation: 36 VGPRs, 28 AGPRs")
    assert fault.instruction.startswith("v_accvgpr_write")


@pytest.mark.parametrize("arch", CDNA)
def test_agprs_begin_behind_all_vector_registers(arch: str) -> None:
    """accum_offset beyond the allocation leaves neither AGPRs nor more VGPRs."""
    launch(arch, [move("v15")], vectors=16, accum_offset=64)
    assert "16 VGPRs, 0 AGPRs" in refused(arch, [move("v16")], vectors=16, accum_offset=64).reason
    assert "uses a0 beyond" in refused(arch, [to_accumulator(0)], vectors=16, accum_offset=64).reason


def test_sgprs_are_counted_on_cdna_and_vcc_and_the_like_are_always_there() -> None:
    lines = [set_scalar("s31"), set_scalar("s102"), set_scalar("s106"), set_scalar("m0")]
    launch("gfx942", lines, sgprs=32)
    fault = refused("gfx942", [set_scalar("s32")], sgprs=32)
    assert "uses s32 beyond" in fault.reason and fault.reason.endswith("and 32 SGPRs")
    launch("gfx1201", [set_scalar("s105")], sgprs=16)


@pytest.mark.parametrize(
    ("line", "first"),
    [
        (("VOP3", "v_lshlrev_b64", {"vdst": "v2", "src0": 1, "src1": "v7"}), "v8"),
        (("GLOBAL", "global_load_dwordx4", {"addr": "v2", "saddr": "s6", "vdst": "v6"}), "v8 and 1 more registers"),
        (("DS", "ds_write_b64", {"addr": "v0", "data0": "v7"}), "v8"),
        (("SMEM", "s_load_dwordx4", {"sdata": "s16", "sbase": "s0", "imm": 1}), "s16 and 3 more registers"),
    ],
)
def test_every_register_of_an_operand_counts(line: Any, first: str) -> None:
    reason = refused("gfx942", [set_scalar("s6"), line], vectors=8, sgprs=16).reason
    assert reason.startswith(f"uses {first} beyond")


def test_an_instruction_that_is_not_executed_may_name_any_register() -> None:
    launch("gfx942", [("SOPP", "s_branch", {"simm16": 1}), move("v200")], vectors=8)


def test_equal_code_of_two_kernels_is_bound_for_each_descriptor() -> None:
    text = assemble_text("gfx942", [move("v64"), END])
    image = make_object("gfx942", {"wide": Kernel(text), "narrow": Kernel(text, vectors=64)})
    out = np.zeros(1, np.uint32)
    how: dict[str, Any] = {
        "grid": (1, 1, 1),
        "block": (1, 1, 1),
        "arguments": struct.pack("<Q", out.ctypes.data),
        "buffers": [Buffer(out.ctypes.data, out.nbytes)],
    }
    Simulator().launch(image, "wide", **how)
    with pytest.raises(Fault, match=r"narrow: .*uses v64 beyond"):
        Simulator().launch(image, "narrow", **how)
