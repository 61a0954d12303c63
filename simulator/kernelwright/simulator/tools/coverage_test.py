from __future__ import annotations

import pytest

from kernelwright.simulator.code.object_file import read_code_object
from kernelwright.simulator.testing.objects import Kernel, assemble_text, make_object
from kernelwright.simulator.tools.coverage import UNDECODED, coverage, gaps

END = ("SOPP", "s_endpgm")


def test_a_modelled_kernel_has_no_gaps() -> None:
    text = assemble_text("gfx942", [("SOP1", "s_mov_b32", {"sdst": "s5", "ssrc0": 7}), END])
    assert coverage(make_object("gfx942", {"k": Kernel(text)})) == {}


def test_unmodelled_instructions_are_counted_behind_the_end_of_execution_too() -> None:
    unknown = ("SOPP", "s_sethalt", {"simm16": 1})
    text = assemble_text("gfx942", [unknown, END, unknown, unknown])
    image = make_object("gfx942", {"k": Kernel(text), "other": Kernel(assemble_text("gfx942", [unknown, END]))})
    assert coverage(image) == {"s_sethalt": 4}
    (gap,) = gaps(read_code_object(image))
    assert (gap.pc, gap.count) == (0, 4)
    assert "s_sethalt (SOPP) has no semantics on gfx942" in gap.reason


def test_an_unmodelled_mode_is_a_gap() -> None:
    text = assemble_text("gfx1201", [("SOP1", "s_barrier_signal", {"ssrc0": 3}), END])
    assert coverage(make_object("gfx1201", {"k": Kernel(text)})) == {"s_barrier_signal": 1}


@pytest.mark.parametrize("arch", ["gfx90a", "gfx1100", "gfx1201"])
def test_bytes_that_are_no_instruction_are_a_gap(arch: str) -> None:
    text = assemble_text(arch, [END]) + b"\xff" * 8
    assert coverage(make_object(arch, {"k": Kernel(text)})) == {UNDECODED: 1}
