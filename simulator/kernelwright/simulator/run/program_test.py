from __future__ import annotations

import pytest

from kernelwright.simulator.code.object_file import read_code_object
from kernelwright.simulator.errors import Fault, Trap
from kernelwright.simulator.run.program import Program
from kernelwright.simulator.run.report import counts_of
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object, run_lines

NOP: Line = ("SOPP", "s_nop")
MOVE: Line = ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 1})
END: Line = ("SOPP", "s_endpgm")


def program(*lines: Line) -> Program:
    code = read_code_object(make_object("gfx942", {"k": Kernel(assemble_text("gfx942", lines))}))
    return Program(code, code.kernel("k"))


def test_straight_runs_end_at_branches_barriers_and_the_end() -> None:
    decoded = program(MOVE, NOP, ("SOPP", "s_cbranch_scc1", {"simm16": 1}), MOVE, ("SOPP", "s_barrier"), NOP, END)
    assert [(run.start, run.stop) for run in (decoded.run_from(at) for at in range(7))] == [
        (0, 3), (1, 3), (2, 3), (3, 5), (4, 5), (5, 7), (6, 7),
    ]  # fmt: skip
    assert decoded.run_from(1).steps == tuple(decoded.steps[1:3])
    assert (decoded.cut(0, 2).stop, decoded.cut(3, 40).stop) == (2, 5)


def test_instructions_of_equal_bytes_share_their_step_unless_they_know_where_they_stand() -> None:
    branch: Line = ("SOPP", "s_branch", {"simm16": 0})
    decoded = program(MOVE, MOVE, branch, branch, END)
    assert decoded.steps[0] is decoded.steps[1]
    assert decoded.steps[2] is not decoded.steps[3]


def test_an_unmodelled_instruction_faults_only_when_it_is_executed() -> None:
    halt: Line = ("SOPP", "s_sethalt", {"simm16": 1})
    run_lines("gfx942", [("SOPP", "s_branch", {"simm16": 1}), halt])
    with pytest.raises(Fault, match=r"pc 0x0: s_sethalt simm16:1: s_sethalt \(SOPP\) has no semantics on gfx942"):
        run_lines("gfx942", [halt])


def test_labels_are_starts_of_instructions() -> None:
    decoded = program(("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0x12345}), END)
    assert decoded.labels[0] == 0 and decoded.labels[8] == 1
    with pytest.raises(Trap, match="the middle of an instruction"):
        decoded.labels[4]


def test_a_function_without_an_end_is_noticed() -> None:
    decoded = program(MOVE)
    assert decoded.instructions[-1].name == "end of function"
    with pytest.raises(Trap, match="runs past the end of its function"):
        decoded.steps[-1](None)  # type: ignore[arg-type]


def test_counts_add_runs_up_by_class() -> None:
    decoded = program(MOVE, MOVE, ("SOPP", "s_branch", {"simm16": 0}), NOP, END)
    counts = counts_of(decoded, [{(0, 3): 5, (3, 5): 2}, {(1, 3): 1}])
    assert {kind: count for kind, count in counts.items() if count} == {"scalar": 11, "branch": 6, "other": 4}
