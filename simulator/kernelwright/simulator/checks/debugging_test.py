from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.debugging import Debug, Event, Stop, print_to
from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Line, run_lines

LINES: list[Line] = [
    ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
    ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"}),
    ("VOP1", "v_mov_b32", {"vdst": "v2", "src0": 1.0}),
    ("DS", "ds_write_b32", {"addr": "v1", "data0": "v2"}),
    ("SOPC", "s_cmp_eq_u32", {"ssrc0": 1, "ssrc1": 1}),
    ("GLOBAL", "global_store_dword", {"addr": "v1", "saddr": "s6", "data": "v2"}),
]
STORE_PC = 8 + 4 + 4 + 8 + 4


def go(debug: Debug, out: np.ndarray[Any, Any] | None = None, **how: Any) -> np.ndarray[Any, Any]:
    simulator = Simulator(debug=debug, processes=2)
    return run_lines("gfx942", LINES, simulator=simulator, out=out, **({"block": 8, "groups": 2, "lds": 64} | how))


def test_a_trace_shows_each_instruction_and_what_it_changed() -> None:
    events: list[Event] = []
    go(Debug(trace=events.append))
    assert len(events) == 2 * 7
    assert [event.pc for event in events[:7]] == [0, 8, 12, 16, 24, STORE_PC, STORE_PC + 8]
    shift, move = events[1], events[2]
    assert shift.instruction.startswith("v_lshlrev_b32")
    assert list(shift.changed) == ["v1"] and list(np.asarray(shift.changed["v1"])[:3]) == [0, 4, 8]
    assert np.asarray(move.changed["v2"])[0] == 0x3F800000
    assert set(events[0].changed) == {"s6", "s7"}
    assert events[4].changed == {"scc": 1} and not events[5].changed
    assert {event.workgroup for event in events} == {(0, 0, 0), (1, 0, 0)}


def test_a_trace_can_be_written_as_text_and_restricted() -> None:
    file = io.StringIO()
    go(Debug(trace=print_to(file), workgroup=(1, 0, 0), wave=0))
    lines = file.getvalue().splitlines()
    assert len(lines) == 7
    assert lines[1].startswith("1,0,0 w0      8  v_lshlrev_b32") and lines[1].endswith("v1=[0x0 0x4 0x8 0xc …]")


def test_a_breakpoint_shows_registers_and_memory() -> None:
    seen: list[Any] = []

    def stop(here: Stop) -> None:
        out = here.s(6) | here.s(7) << 32
        seen.append((here.v(2, "f32")[0], here.lds(4, 4), here.memory(out, 4), here.exec, here.pc))
        with pytest.raises(SimulatorError, match="no registered memory"):
            here.memory(64, 4)
        assert "s6=" in here.dump() and "v1: 00000000 00000004" in here.dump()

    out = go(Debug(breakpoints={STORE_PC: stop}), groups=1)
    assert seen == [(1.0, np.float32(1).tobytes(), bytes(4), 255, STORE_PC)]
    assert (out.view(np.float32) == 1).all()


@pytest.mark.parametrize("pc", [STORE_PC + 1, -4, 1 << 20])
def test_a_breakpoint_stands_at_an_instruction(pc: int) -> None:
    with pytest.raises(SimulatorError, match=rf"a breakpoint at pc {pc:#x}, where no instruction of .* begins"):
        go(Debug(breakpoints={pc: lambda here: None}), groups=1)


def test_a_breakpoint_may_change_the_wave() -> None:
    def change(here: Stop) -> None:
        here.state.v[2] = 7

    assert (go(Debug(breakpoints={STORE_PC: change}, workgroup=(0, 0, 0)), groups=1) == 7).all()


def test_the_registers_at_a_fault_can_be_dumped() -> None:
    events: list[Event] = []
    dumps: list[str] = []
    with pytest.raises(Fault) as caught:
        go(Debug(trace=events.append, fault=lambda here: dumps.append(here.dump())), np.zeros(4, np.uint32), groups=1)
    assert events[-1].fault == caught.value.reason and events[-1].fault in str(events[-1])
    (dump,) = dumps
    assert f"pc {STORE_PC:#x}: global_store_dword" in dump and caught.value.reason in dump


def test_halves_of_registers_are_seen_as_two_values_of_a_lane() -> None:
    def stop(here: Stop) -> None:
        here.state.v[9] = np.uint32(0x3F80_4000)  # 1.0 and 2.0 in bf16
        assert here.v(9, "bf16").astype(float).tolist() == [[2.0, 1.0]] * len(here.v(9))
        here.state.v[9] = np.uint32(0xC000_3C00)  # -2.0 and 1.0 in fp16
        assert here.v(9, "f16").tolist() == [[1.0, -2.0]] * len(here.v(9))
        assert here.v(9, "i16")[0].tolist() == [0x3C00, 0xC000 - 0x10000]
        assert here.v(9, "u16")[0].tolist() == [0x3C00, 0xC000]

    go(Debug(breakpoints={0: stop}))


def test_unknown_views_are_refused() -> None:
    def stop(here: Stop) -> None:
        with pytest.raises(SimulatorError, match="seen as 'f8'; allowed: u32, i32, f32, u16, i16, f16, bf16"):
            here.v(0, "f8")

    go(Debug(breakpoints={0: stop}))
