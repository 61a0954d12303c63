from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import Fault, ObjectError, SimulatorError
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.run.report import LaunchReport
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object

END: Line = ("SOPP", "s_endpgm")
# s[2:3] = address of the output; v1 = 4 * (work-item + 128 * workgroup)
PLACE: list[Line] = [
    ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
    ("SOP2", "s_mul_i32", {"sdst": "s8", "ssrc0": "s2", "ssrc1": 128}),
    ("VOP2", "v_add_u32", {"vdst": "v1", "src0": "s8", "vsrc1": "v0"}),
    ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v1"}),
]
STORE: Line = ("GLOBAL", "global_store_dword", {"addr": "v1", "saddr": "s6", "data": "v2"})
SUM: list[Line] = [*PLACE, ("VOP2", "v_add_u32", {"vdst": "v2", "src0": "s2", "vsrc1": "v1"}), STORE, END]


def launch(
    lines: Sequence[Line], out: np.ndarray[Any, Any], simulator: Simulator | None = None, **how: Any
) -> LaunchReport:
    kernel = Kernel(assemble_text("gfx942", lines), **{key: how.pop(key) for key in ("lds", "scratch") if key in how})
    settings: dict[str, Any] = {
        "grid": (4, 1, 1),
        "block": (128, 1, 1),
        "arguments": struct.pack("<Q", out.ctypes.data),
        "buffers": [Buffer(out.ctypes.data, out.nbytes, name="D")],
    }
    image = make_object("gfx942", {"k": kernel})
    return (simulator or Simulator()).launch(image, "k", **(settings | how))


def expected() -> np.ndarray[Any, Any]:
    index = np.arange(512, dtype=np.uint32)
    return 4 * index + index // 128


@pytest.mark.parametrize("processes", [1, 2, 3, 9])
@pytest.mark.parametrize("seed", [None, 7])
def test_workgroups_run_in_any_number_of_processes(processes: int, seed: int | None) -> None:
    out = np.zeros(512, np.uint32)
    report = launch(SUM, out, Simulator(processes=processes, seed=seed))
    np.testing.assert_array_equal(out, expected())
    assert (report.kernel, report.arch, report.workgroups, report.waves) == ("k", "gfx942", 4, 8)
    assert report.instructions == 8 * len(SUM) and report.simulated
    assert sum(report.counts.values()) == report.instructions
    counts = {kind: count for kind, count in report.counts.items() if count}
    assert counts == {"scalar": 16, "vector": 24, "global": 8, "other": 8}


@pytest.mark.parametrize("processes", [1, 2])
def test_a_fault_names_the_place_whatever_the_processes(processes: int) -> None:
    out = np.zeros(512 - 7, np.uint32)
    with pytest.raises(Fault) as caught:
        launch(SUM, out, Simulator(processes=processes))
    fault = caught.value
    assert (fault.kernel, fault.workgroup, fault.wave, fault.pc) == ("k", (3, 0, 0), 1, 0x1C)
    assert fault.instruction.startswith("global_store_dword")
    assert fault.address == out.ctypes.data + out.nbytes
    assert "4 bytes past the end of D" in str(fault)


@pytest.mark.parametrize("processes", [1, 2])
def test_read_only_memory_stays_as_it_is(processes: int) -> None:
    out = np.zeros(512, np.uint32)
    buffers = [Buffer(out.ctypes.data, out.nbytes, writable=False, name="A")]
    with pytest.raises(Fault, match="a write to read-only memory: A at"):
        launch(SUM, out, Simulator(processes=processes), buffers=buffers)
    assert not out.any()


def test_the_last_wave_of_a_block_may_have_idle_lanes() -> None:
    out = np.full(512, 9, np.uint32)
    launch(SUM, out, grid=(1, 1, 1), block=(70, 1, 1))
    np.testing.assert_array_equal(out[:70], expected()[:70])
    assert (out[70:] == 9).all()


def test_work_item_ids_are_packed() -> None:
    # v0 = x | y << 10 | z << 20: the lane is x + 4y + 8z
    lines = [
        PLACE[0],
        ("VOP3", "v_mbcnt_lo_u32_b32", {"vdst": "v1", "src0": -1, "src1": 0}),
        ("VOP3", "v_mbcnt_hi_u32_b32", {"vdst": "v1", "src0": -1, "src1": "v1"}),
        ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v1"}),
        ("VOP1", "v_mov_b32", {"vdst": "v2", "src0": "v0"}),
        STORE,
        END,
    ]
    out = np.zeros(16, np.uint32)
    image = make_object("gfx942", {"k": Kernel(assemble_text("gfx942", lines), workitem_ids=3)})
    buffers = [Buffer(out.ctypes.data, out.nbytes)]
    arguments = struct.pack("<Q", out.ctypes.data)
    Simulator().launch(image, "k", grid=(1, 1, 1), block=(4, 2, 2), arguments=arguments, buffers=buffers)
    lane = np.arange(16)
    np.testing.assert_array_equal(out, lane % 4 | (lane // 4 % 2) << 10 | (lane // 8) << 20)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"block": (2048, 1, 1)}, "at most 1024 work-items"),
        ({"grid": (0, 1, 1)}, "all at least 1"),
        ({"dynamic_lds": 70000}, "70000 bytes of LDS; gfx942 has 65536"),
        ({"buffers": [Buffer(0, 8)]}, "no buffer: address 0x0"),
    ],
)
def test_impossible_sizes_are_refused(how: dict[str, Any], reason: str) -> None:
    with pytest.raises(SimulatorError, match=reason):
        launch(SUM, np.zeros(512, np.uint32), **how)


def test_wrong_kernels_and_settings_are_refused() -> None:
    image = make_object("gfx942", {"k": Kernel(assemble_text("gfx942", [END]))})
    empty: dict[str, Any] = {"grid": (1, 1, 1), "block": (1, 1, 1), "arguments": bytes(8), "buffers": []}
    with pytest.raises(ObjectError, match="has no kernel 'j'; it has: k"):
        Simulator().launch(image, "j", **empty)
    with pytest.raises(SimulatorError, match="must be at least 1"):
        Simulator(processes=0)
    large = make_object("gfx942", {"k": Kernel(assemble_text("gfx942", [END]), arguments=24)})
    with pytest.raises(SimulatorError, match="takes 24 bytes of arguments; 8 given"):
        Simulator().launch(large, "k", **empty)


def test_each_workgroup_starts_with_fresh_registers_lds_and_scratch() -> None:
    spare: list[Line] = [
        ("SCRATCH", "scratch_load_dword", {"addr": "v0", "vdst": "v2", "saddr": "s20", "sve": 0}),
        ("SCRATCH", "scratch_store_dword", {"addr": "v0", "data": "v0", "saddr": "s20", "sve": 0}),
    ]
    zero: Line = ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0})
    out = np.zeros(512, np.uint32)
    launch([*PLACE, zero, *spare, STORE, END], out, scratch=16)
    assert len(set(out.tolist())) == 1, "a workgroup saw another's scratch"
