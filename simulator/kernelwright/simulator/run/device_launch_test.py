"""A kernel's whole way: the stand-in HIP runtime, the simulator, memory of this process, and what is said about it."""

from __future__ import annotations

import ctypes
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernelwright.simulator import Buffer, Checks, Debug, Event, Fault, configure, last_report, last_reports
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.run.device import run
from kernelwright.simulator.run.runtime import ARCHS
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object
from kernelwright.simulator.testing.runtime import runtime_path

BLOCK = 64
Array = NDArray[np.uint32]


def lines(arch: str, data: str = "v0") -> list[Line]:
    """out[64 * workgroup + work-item] = data, where s[0:1] points to the address of out."""
    target = TARGETS[arch]
    shift: Line = ("VOP2", "v_lshlrev_b32", {"vdst": "v30", "src0": 2, "vsrc1": "v31"})
    group = "s2" if target.name != "gfx1201" else "s117"  # ttmp9
    index: list[Line] = [
        ("SOP2", "s_lshl_b32", {"sdst": "s8", "ssrc0": group, "ssrc1": 6}),
        ("VOP2", "v_or_b32", {"vdst": "v31", "src0": "s8", "vsrc1": "v0"}),
        shift,
    ]
    if arch == "gfx1201":
        return [
            ("SMEM", "s_load_b64", {"sdata": "s4", "sbase": "s0", "ioffset": 0, "soffset": "s124"}),
            ("SOPP", "s_wait_kmcnt", {"simm16": 0}),
            *index,
            ("VGLOBAL", "global_store_b32", {"vaddr": "v30", "saddr": "s4", "vsrc": data}),
        ]
    if arch == "gfx1100":
        return [
            ("SMEM", "s_load_b64", {"sdata": "s4", "sbase": "s0", "offset": 0, "soffset": "s124"}),
            ("SOPP", "s_waitcnt", {"simm16": 0}),
            *index,
            ("GLOBAL", "global_store_b32", {"addr": "v30", "saddr": "s4", "data": data}),
        ]
    return [
        ("SMEM", "s_load_dwordx2", {"sdata": "s4", "sbase": "s0", "imm": 1}),
        ("SOPP", "s_waitcnt", {"simm16": 0}),
        *index,
        ("GLOBAL", "global_store_dword", {"addr": "v30", "saddr": "s4", "data": data}),
    ]


def launcher(arch: str, out: Array, groups: int, data: str = "v0") -> Callable[[], int]:
    """What a kernel library does."""
    text = assemble_text(arch, [*lines(arch, data), ("SOPP", "s_endpgm")])
    image = make_object(arch, {"number": Kernel(text)})
    hip: Any = ctypes.CDLL(str(runtime_path()))

    def launch() -> int:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        assert hip.hipModuleLoadData(ctypes.byref(module), image) == 0
        assert hip.hipModuleGetFunction(ctypes.byref(function), module, b"number") == 0
        arguments = struct.pack("<Q", out.ctypes.data)
        size = ctypes.c_size_t(len(arguments))
        buffer = ctypes.create_string_buffer(arguments, len(arguments))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        status: int = hip.hipModuleLaunchKernel(function, groups, 1, 1, BLOCK, 1, 1, 0, None, None, extra)
        return status

    return launch


def memory(out: Array, nbytes: int | None = None, writable: bool = True) -> list[Buffer]:
    return [Buffer(out.ctypes.data, out.nbytes if nbytes is None else nbytes, writable, "D")]


@pytest.fixture(autouse=True)
def packaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_SIMULATOR_LIBRARY", str(runtime_path()))


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("arch", ARCHS)
def test_a_kernel_writes_memory_of_this_process(arch: str, processes: int) -> None:
    out = np.zeros(3 * BLOCK, np.uint32)
    with configure(processes=processes):
        assert run(arch, memory(out), launcher(arch, out, 3)) == 0
    assert np.array_equal(out, np.tile(np.arange(BLOCK), 3))
    report = last_report()
    assert report is not None and last_reports() == (report,)
    assert (report.kernel, report.arch, report.workgroups, report.simulated) == ("number", arch, 3, True)
    assert report.waves == 3 * BLOCK // TARGETS[arch].lanes
    assert report.counts["global"] == report.waves
    assert report.counts["vector"] == 2 * report.waves
    assert report.instructions == report.waves * (len(lines(arch)) + 1) == sum(report.counts.values())


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("arch", ARCHS)
def test_a_fault_says_where(arch: str, processes: int) -> None:
    out = np.zeros(4 * BLOCK, np.uint32)
    with configure(processes=processes), pytest.raises(Fault) as caught:
        run(arch, memory(out, 2 * out.nbytes // 4), launcher(arch, out, 4))
    fault = caught.value
    assert (fault.kernel, fault.workgroup[1:]) == ("number", (0, 0)) and fault.workgroup[0] >= 2
    assert fault.instruction.startswith("global_store") and fault.wave == 0
    assert fault.address == out.ctypes.data + fault.workgroup[0] * BLOCK * 4
    assert fault.pc == len(assemble_text(arch, lines(arch)[:-1]))
    for part in ("number", f"pc {fault.pc:#x}", f"wave {fault.wave}", fault.instruction, f"{fault.address:#x}"):
        assert part in str(fault)
    assert last_report() is None and not out[2 * BLOCK :].any()


def test_read_only_memory_stays_as_it_is() -> None:
    out = np.zeros(BLOCK, np.uint32)
    with pytest.raises(Fault, match="global_store_dword"):
        run("gfx942", memory(out, writable=False), launcher("gfx942", out, 1))
    assert not out.any()


def test_checks_are_made_while_they_are_configured() -> None:
    out = np.zeros(BLOCK, np.uint32)
    launch = launcher("gfx942", out, 1, data="v9")  # nobody wrote v9
    assert run("gfx942", memory(out), launch) == 0
    with configure(checks=Checks(uninitialised=True)), pytest.raises(Fault, match="v9"):
        run("gfx942", memory(out), launch)
    assert run("gfx942", memory(out), launch) == 0


def test_a_configured_limit_stops_a_launch() -> None:
    out = np.zeros(2 * BLOCK, np.uint32)
    launch = launcher("gfx942", out, 2)
    with configure(instruction_limit=14):
        assert run("gfx942", memory(out), launch) == 0
    with configure(instruction_limit=13), pytest.raises(Fault, match="13 instructions ran, 1 workgroups ended"):
        run("gfx942", memory(out), launch)
    assert run("gfx942", memory(out), launch) == 0


def test_without_tinygrad_it_says_what_to_install() -> None:
    code = f"""
import sys
sys.path[:] = {sys.path!r}
sys.modules["tinygrad"] = None
from kernelwright.simulator import SimulatorError
from kernelwright.simulator.code.decode import decode_one
from kernelwright.simulator.code.target import TARGETS
try:
    decode_one(bytes(8), TARGETS["gfx942"], 0)
except SimulatorError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "needs tinygrad" in done.stdout and "pip install kernelwright[simulator]" in done.stdout


def test_a_launch_can_be_looked_at() -> None:
    out, events, stops = np.zeros(2 * BLOCK, np.uint32), list[Event](), list[Array]()
    last = len(assemble_text("gfx942", lines("gfx942")[:-1]))
    debug = Debug(trace=events.append, breakpoints={last: lambda stop: stops.append(stop.v(30))}, workgroup=(1, 0, 0))
    with configure(debug=debug, processes=2):
        assert run("gfx942", memory(out), launcher("gfx942", out, 2)) == 0
    assert [event.pc for event in events] == sorted({event.pc for event in events}) and len(events) == 7
    assert events[-2].pc == last and all(event.workgroup == (1, 0, 0) for event in events)
    (offsets,) = stops
    assert np.array_equal(offsets, 4 * np.arange(BLOCK, 2 * BLOCK))
