from __future__ import annotations

import numpy as np
import pytest

from kernelwright.simulator.errors import Fault
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Line, run_lines

ARCHS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]


def pointer(arch: str) -> list[Line]:
    if arch in ("gfx1100", "gfx1201"):
        offset = "offset" if arch == "gfx1100" else "ioffset"
        return [("SMEM", "s_load_b64", {"sdata": "s2", "sbase": "s0", offset: 0, "soffset": "s124"})]
    return [("SMEM", "s_load_dwordx2", {"sdata": "s2", "sbase": "s0", "imm": 1})]


def store(arch: str, scalar: str) -> list[Line]:
    """out[lane] = a scalar register."""
    head: list[Line] = [
        ("VOP2", "v_lshlrev_b32", {"vdst": "v30", "src0": 2, "vsrc1": "v0"}),
        ("VOP1", "v_mov_b32", {"vdst": "v31", "src0": scalar}),
    ]
    if arch == "gfx1201":
        return [*head, ("VGLOBAL", "global_store_b32", {"vaddr": "v30", "saddr": "s2", "vsrc": "v31"})]
    name = "global_store_b32" if arch == "gfx1100" else "global_store_dword"
    return [*head, ("GLOBAL", name, {"addr": "v30", "saddr": "s2", "data": "v31"})]


def add(arch: str, register: str, value: int) -> Line:
    name = "s_add_co_u32" if arch == "gfx1201" else "s_add_u32"
    return ("SOP2", name, {"sdst": register, "ssrc0": register, "ssrc1": value})


def result(arch: str, lines: list[Line], **how: int) -> int:
    out = run_lines(arch, [*pointer(arch), *lines, *store(arch, "s20")], **how)  # type: ignore[arg-type]
    return int(out[0])


@pytest.mark.parametrize("arch", ARCHS)
def test_a_loop_runs_as_often_as_it_says(arch: str) -> None:
    lines = [
        ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0}),
        add(arch, "s20", 3),
        ("SOPC", "s_cmp_lt_u32", {"ssrc0": "s20", "ssrc1": 30}),
        ("SOPP", "s_cbranch_scc1", {"simm16": 0xFFFD}),  # three instructions back
    ]
    assert result(arch, lines) == 30


CONDITIONS: dict[str, list[Line]] = {
    "s_cbranch_scc0": [("SOPC", "s_cmp_eq_u32", {"ssrc0": 1, "ssrc1": 2})],
    "s_cbranch_scc1": [("SOPC", "s_cmp_eq_u32", {"ssrc0": 2, "ssrc1": 2})],
    "s_cbranch_vccz": [("SOP1", "s_mov_b64", {"sdst": "vcc", "ssrc0": 0})],
    "s_cbranch_vccnz": [("SOP1", "s_mov_b64", {"sdst": "vcc", "ssrc0": 4})],
    "s_cbranch_execz": [("SOP1", "s_mov_b64", {"sdst": "exec", "ssrc0": 0})],
    "s_cbranch_execnz": [("SOP1", "s_mov_b64", {"sdst": "exec", "ssrc0": 1})],
    "s_branch": [("SOPP", "s_nop")],
}
OPPOSITE = {"scc0": "scc1", "scc1": "scc0", "vccz": "vccnz", "vccnz": "vccz", "execz": "execnz", "execnz": "execz"}


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
@pytest.mark.parametrize("name", CONDITIONS)
def test_branches_are_taken_when_their_condition_holds(arch: str, name: str) -> None:
    restore: Line = ("SOP1", "s_mov_b64", {"sdst": "exec", "ssrc0": 1})
    start: Line = ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0})
    condition = [*CONDITIONS[name]]
    taken = [start, *condition, ("SOPP", name, {"simm16": 1}), add(arch, "s20", 1), add(arch, "s20", 2), restore]
    assert result(arch, taken) == 2
    other = "s_cbranch_" + OPPOSITE[name.removeprefix("s_cbranch_")] if name != "s_branch" else None
    if other:
        taken[taken.index(("SOPP", name, {"simm16": 1}))] = ("SOPP", other, {"simm16": 1})
        assert result(arch, taken) == 3


def test_a_call_returns_behind_itself() -> None:
    lines: list[Line] = [
        ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 5}),
        ("SOPK", "s_call_b64", {"sdst": "s10", "simm16": 2}),  # to the addition of 1
        add("gfx942", "s20", 2),
        ("SOPP", "s_branch", {"simm16": 2}),  # to the end
        add("gfx942", "s20", 1),
        ("SOP1", "s_setpc_b64", {"ssrc0": "s10"}),
    ]
    assert result("gfx942", lines) == 8


@pytest.mark.parametrize("extended", [0, 1])
def test_the_pc_is_an_address_of_the_text(extended: int) -> None:
    """Also with the sign of its 48 bits extended, as compilers do on gfx12."""
    extension: list[Line] = [("SOP1", "s_sext_i32_i16", {"sdst": "s11", "ssrc0": "s11"})]
    lines: list[Line] = [
        ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0}),
        ("SOP1", "s_getpc_b64", {"sdst": "s10"}),  # the address of the next instruction
        *(extension * extended),
        add("gfx942", "s20", 1),
        ("SOP2", "s_add_u32", {"sdst": "s10", "ssrc0": "s10", "ssrc1": 16 + 4 * extended}),  # behind the jump
        ("SOP1", "s_setpc_b64", {"ssrc0": "s10"}),
        add("gfx942", "s20", 2),
    ]
    assert result("gfx942", lines) == 1


def test_wrong_ways_fault() -> None:
    def reason(*lines: Line, **how: int) -> str:
        with pytest.raises(Fault) as caught:
            run_lines("gfx942", list(lines), **how)  # type: ignore[arg-type]
        return caught.value.reason

    far: Line = ("SOPP", "s_branch", {"simm16": 0x4000})
    assert "no function of the code object holds" in reason(far)
    middle: Line = ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0x12345})
    assert "the middle of an instruction" in reason(("SOPP", "s_branch", {"simm16": 1}), middle)
    endless: Line = ("SOPP", "s_branch", {"simm16": 0xFFFF})
    with pytest.raises(Fault, match="an endless loop"):
        run_lines("gfx942", [endless], simulator=Simulator(steps=1000))
    assert "has no semantics" in reason(("SOPP", "s_sethalt", {"simm16": 1}))
    assert "only dealloc_vgprs is modelled" in reason(("SOPP", "s_sendmsg", {"simm16": 1}))


def barrier(arch: str) -> list[Line]:
    if arch == "gfx1201":
        return [("SOP1", "s_barrier_signal", {"ssrc0": -1}), ("SOPP", "s_barrier_wait", {"simm16": 0xFFFF})]
    return [("SOPP", "s_barrier")]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_waves_meet_at_barriers(arch: str, seed: int | None) -> None:
    """Each wave leaves its id in LDS and reads its neighbour's, in 5 rounds."""
    lanes = 64 if arch in ("gfx90a", "gfx942") else 32
    old = arch in ("gfx90a", "gfx942")
    write, read = ("ds_write_b32", "ds_read_b32") if old else ("ds_store_b32", "ds_load_b32")
    swap: Line = ("VOP2", "v_xor_b32", {"vdst": "v2", "src0": 4 * lanes, "vsrc1": "v1"})
    lines: list[Line] = [*pointer(arch), ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"}), swap]
    lines.append(("VOP1", "v_mov_b32", {"vdst": "v3", "src0": "v0"}))
    for _ in range(5):
        lines += [("DS", write, {"addr": "v1", "data0": "v3"}), *barrier(arch)]
        lines += [("DS", read, {"addr": "v2", "vdst": "v3"}), *barrier(arch)]
    name, keys = {
        "gfx1201": ("global_store_b32", ("vaddr", "vsrc")),
        "gfx1100": ("global_store_b32", ("addr", "data")),
    }.get(arch, ("global_store_dword", ("addr", "data")))
    encoding = "VGLOBAL" if arch == "gfx1201" else "GLOBAL"
    lines.append((encoding, name, {keys[0]: "v1", keys[1]: "v3", "saddr": "s2"}))
    out = run_lines(arch, lines, simulator=Simulator(seed=seed), block=2 * lanes, lds=8 * lanes)
    assert (out == np.arange(2 * lanes) ^ lanes).all()


@pytest.mark.parametrize("arch", ARCHS)
def test_a_barrier_that_not_all_reach_is_a_deadlock(arch: str) -> None:
    """The second wave goes to the end."""
    lanes = 64 if arch in ("gfx90a", "gfx942") else 32
    encoding, number = ("VOP1", "v9") if lanes == 64 else ("VOP1_SDST", "s9")
    lines: list[Line] = [
        (encoding, "v_readfirstlane_b32", {"vdst": number, "src0": "v0"}),
        ("SOPC", "s_cmp_lg_u32", {"ssrc0": "s9", "ssrc1": 0}),
        ("SOPP", "s_cbranch_scc1", {"simm16": len(barrier(arch))}),
        *barrier(arch),
    ]
    with pytest.raises(Fault) as caught:
        run_lines(arch, lines, block=2 * lanes)
    assert "deadlock: waits at a barrier for ever, waves [1] ended without it" in caught.value.reason
    assert caught.value.wave == 0 and "s_barrier" in caught.value.instruction


def test_gfx12_barriers_must_be_signalled_once_before_each_wait() -> None:
    arrive, stay = barrier("gfx1201")
    with pytest.raises(Fault, match="without having arrived"):
        run_lines("gfx1201", [stay])
    with pytest.raises(Fault, match="a second time before it waited"):
        run_lines("gfx1201", [arrive, arrive, stay], block=64)
