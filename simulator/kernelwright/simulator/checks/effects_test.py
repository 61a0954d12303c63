from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.effects import effects
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.instructions.semantics import build
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import assemble, make_wave

EXAMPLES: list[tuple[Any, ...]] = [
    ("gfx942", "VOP2", "v_add_u32", {"vdst": "v3", "src0": "s7", "vsrc1": "v4"}),
    ("gfx942", "VOP2", "v_cndmask_b32", {"vdst": "v3", "src0": "v7", "vsrc1": "v4"}),
    ("gfx942", "VOP2", "v_fmac_f32", {"vdst": "v3", "src0": "v7", "vsrc1": "v4"}),
    ("gfx942", "VOPC", "v_cmp_gt_u32", {"src0": "v7", "vsrc1": "v4"}),
    ("gfx942", "VOP3_SDST", "v_cmp_gt_u32", {"vdst": "s20", "src0": "v7", "src1": "v4"}),
    ("gfx942", "VOP3SD", "v_mad_u64_u32", {"vdst": "v2", "sdst": "s8", "src0": "v7", "src1": "s4", "src2": "v10"}),
    ("gfx942", "VOP3", "v_mul_lo_u32", {"vdst": "v2", "src0": "v7", "src1": "s4"}),
    ("gfx942", "VOP3", "v_lshlrev_b64", {"vdst": "v2", "src0": "v7", "src1": "v8"}),
    ("gfx942", "VOP1", "v_readfirstlane_b32", {"vdst": "v9", "src0": "v7"}),
    ("gfx942", "VOP1", "v_swap_b32", {"vdst": "v9", "src0": "v7"}),
    ("gfx950", "VOP1", "v_permlane32_swap_b32", {"vdst": "v9", "src0": "v7"}),
    ("gfx942", "VOP3P", "v_pk_mul_f32", {"vdst": "v8", "src0": "v4", "src1": "s6"}),
    ("gfx942", "VOP2", "v_dot2c_f32_f16", {"vdst": "v9", "src0": "v4", "vsrc1": "v6"}),
    ("gfx942", "VOP3P_MFMA", "v_mfma_f32_32x32x8_f16", {"vdst": "v0", "src0": "v20", "src1": "v22", "src2": "v32"}),
    ("gfx942", "VOP3P", "v_accvgpr_write", {"vdst": "v3", "src0": "v5"}),
    ("gfx942", "VOP3P", "v_accvgpr_read", {"vdst": "v6", "src0": "v3"}),
    ("gfx942", "VOP1", "v_accvgpr_mov_b32", {"vdst": "v4", "src0": "v3"}),
    ("gfx942", "DS", "ds_read_b128", {"vdst": "v3", "addr": "v1"}),
    ("gfx942", "DS", "ds_write2_b64", {"addr": "v1", "data0": "v4", "data1": "v8", "offset1": 1}),
    ("gfx942", "SOP2", "s_add_u32", {"sdst": "s9", "ssrc0": "s7", "ssrc1": "s8"}),
    ("gfx942", "SOP2", "s_and_b64", {"sdst": "s10", "ssrc0": "s20", "ssrc1": "s8"}),
    ("gfx942", "SOPK", "s_addk_i32", {"sdst": "s10", "simm16": 5}),
    ("gfx942", "SOPK", "s_cmpk_gt_i32", {"sdst": "s10", "simm16": 5}),
    ("gfx942", "SOP1", "s_bitset1_b32", {"sdst": "s10", "ssrc0": "s3"}),
    ("gfx1100", "VOPC", "v_cmp_gt_u32", {"src0": "v7", "vsrc1": "v4"}),
    ("gfx1100", "VOP3", "v_cndmask_b32", {"vdst": "v3", "src0": "v7", "src1": "v4", "src2": "s6"}),
    ("gfx1100", "VOP2", "v_add_co_ci_u32", {"vdst": "v3", "src0": "v7", "vsrc1": "v4"}),
    ("gfx1201", "VOP3P", "v_wmma_f32_16x16x16_f16", {"vdst": "v0", "src0": "v20", "src1": "v24", "src2": "v32"}),
    ("gfx1201", "DS", "ds_load_b64", {"vdst": "v3", "addr": "v1"}),
    ("gfx1201", "SOP1", "s_mov_b64", {"sdst": "s10", "ssrc0": "s4"}),
]


def example(arch: str, encoding: str, name: str, fields: dict[str, Any]) -> Instruction:
    return assemble(arch, encoding, name, **fields)


def start(arch: str) -> Wave:
    wave = make_wave(arch)
    wave.v &= np.uint32(0x3FF8)  # addresses in LDS
    wave.lds = Lds(65536)
    wave.lds.words[:] = np.arange(wave.lds.words.size)
    return wave


@pytest.mark.parametrize("what", EXAMPLES, ids=lambda what: f"{what[0]}-{what[2]}")
def test_what_is_not_named_neither_matters_nor_changes(what: tuple[Any, ...]) -> None:
    instruction = example(*what)
    step, accesses = build(instruction, TARGETS[what[0]]), effects(instruction, TARGETS[what[0]])
    outcomes = []
    for seed in (1, 2):
        wave, other = start(what[0]), np.random.default_rng(seed)
        for row in set(range(512)) - set(accesses.vector_reads):
            wave.v[row] = other.integers(0, 1 << 32, wave.lanes, np.uint32)
        for number in set(range(124)) - set(accesses.scalar_reads):
            wave.s[number] = int(other.integers(0, 1 << 32))
        vectors, scalars = wave.v.copy(), list(wave.s)
        with np.errstate(all="ignore"):
            step(wave)
        changed = set(np.flatnonzero((wave.v[:512] != vectors[:512]).any(axis=1)).tolist())
        assert changed <= set(accesses.vector_writes)
        assert {n for n in range(124) if wave.s[n] != scalars[n]} <= set(accesses.scalar_writes)
        results = [wave.s[number] for number in accesses.scalar_writes]
        outcomes.append((wave.v[list(accesses.vector_writes)].tobytes(), results, wave.scc, wave.lds.words.tobytes()))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("what", EXAMPLES, ids=lambda what: f"{what[0]}-{what[2]}")
def test_everything_named_matters(what: tuple[Any, ...]) -> None:
    instruction = example(*what)
    step, accesses = build(instruction, TARGETS[what[0]]), effects(instruction, TARGETS[what[0]])
    registers = [("v", row) for row in accesses.vector_reads] + [("s", number) for number in accesses.scalar_reads]
    assert registers
    for file, number in registers:
        images = set()
        for value in (0, 8, 0x3C003C00, 0xFFFFFFF7) if "ds_" not in instruction.name else (0, 8, 16):
            wave = start(what[0])
            wave.v[20:40] = 0x3C003C00  # ones, as factors
            if file == "v":
                wave.v[number] = value
            else:
                wave.s[number] = value
            with np.errstate(all="ignore"):
                step(wave)
            written = wave.v[[row for row in accesses.vector_writes if (file, row) != ("v", number)] or [0]]
            kept = wave.v[number] if file == "v" and number in accesses.vector_writes else written
            scalars = tuple(wave.s[n] for n in accesses.scalar_writes)
            images.add((written.tobytes(), kept.tobytes(), scalars, wave.scc, wave.lds.words.tobytes()))
        assert len(images) > 1, f"{file}{number} makes no difference to {instruction}"


def test_memory_instructions_name_addresses_and_data() -> None:
    target = TARGETS["gfx942"]
    fields = {"vdata": "v4", "vaddr": "v1", "srsrc": "s8", "soffset": "s3"}
    load = effects(assemble("gfx942", "MUBUF", "buffer_load_dwordx4", **fields, offen=1), target)
    assert load.vector_writes == (4, 5, 6, 7) and load.vector_reads == (1,) and load.loads
    assert set(load.scalar_reads) == {3, 8, 9, 10, 11}
    store = effects(assemble("gfx942", "MUBUF", "buffer_store_dwordx2", **fields), target)
    assert store.vector_reads == store.data == (4, 5) and not store.vector_writes
    scalar = effects(assemble("gfx942", "SMEM", "s_load_dwordx4", sdata="s8", sbase="s2", imm=1, offset=8), target)
    assert scalar.scalar_writes == (8, 9, 10, 11) and scalar.scalar_reads == (2, 3)


def test_fields_without_a_use_are_neither_read_nor_written() -> None:
    for encoding, name, fields in (
        ("SOP1", "s_barrier_signal", {"ssrc0": -1}),
        ("SOP1", "s_getpc_b64", {"sdst": "s10"}),
        ("SOPP", "s_nop", {}),
    ):
        accesses = effects(assemble("gfx1201", encoding, name, **fields), TARGETS["gfx1201"])
        assert not accesses.scalar_reads and accesses.scalar_writes == ((10, 11) if "sdst" in fields else ())
