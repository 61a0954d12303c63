from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.testing.instructions import execute, make_wave


@pytest.mark.parametrize(
    "table", [*range(0, 256, 5), 0xEA, 0xF8, 0xEC, 0xFE, 0x80, 0x96, 0x6C, 0x78, 0x36, 0xC8, 0x48, 0xF6]
)
def test_truth_tables_bit_by_bit(table: int) -> None:
    """Bit 4a + 2b + c of the table, for the lowest and the highest bit of every lane."""
    for name, high in (("v_bitop3_b32", 31), ("v_bitop3_b16", 15)):
        wave = make_wave("gfx950", seed=table)
        fields = {"omod": table >> 6, "abs": table >> 3 & 7, "neg": table & 7}
        execute(wave, "VOP3", name, vdst="v7", src0="v1", src1="v2", src2="v3", **fields)
        for bit in (0, high):
            a, b, c = (wave.v[row] >> np.uint32(bit) & np.uint32(1) for row in (1, 2, 3))
            wanted = np.uint32(table) >> (4 * a + 2 * b + c).astype(np.uint32) & np.uint32(1)
            np.testing.assert_array_equal(wave.v[7] >> np.uint32(bit) & np.uint32(1), wanted)


def test_random_words() -> None:
    wave = make_wave("gfx950")
    wave.v[1][:3] = [1, 0x80000000, 0xC0000001]
    execute(wave, "VOP1", "v_prng_b32", vdst="v2", src0="v1")
    assert wave.v[2][:3].tolist() == [2, 197, (0xC0000001 << 1 & 0xFFFFFFFF) ^ 197]


def test_64_bit_moves() -> None:
    wave = make_wave("gfx942")
    execute(wave, "VOP1", "v_mov_b64", vdst="v2", src0="v4")
    np.testing.assert_array_equal(wave.v[2:4], wave.v[4:6])
    execute(wave, "VOP1", "v_mov_b64", vdst="v2", src0="s6")
    assert (wave.v[2] == wave.s[6]).all() and (wave.v[3] == wave.s[7]).all()


def picked(a: int, b: int, selector: int) -> int:
    """v_perm_b32 by its definition: bytes of b are 0-3, of a 4-7."""
    both, result = a << 32 | b, 0
    for place in range(4):
        which = selector >> 8 * place & 255
        if which >= 13:
            byte = 255
        elif which == 12:
            byte = 0
        elif which >= 8:
            byte = 255 * (both >> 16 * (which - 8) + 15 & 1)
        else:
            byte = both >> 8 * which & 255
        result |= byte << 8 * place
    return result


@given(st.integers(0, 0xFFFFFFFF), st.integers(0, 14).map(lambda n: n * 0x01010101))
@settings(max_examples=30, deadline=None)
def test_permuted_bytes(selector: int, every: int) -> None:
    for chosen in (selector, selector & 0x0F0F0F0F, selector & 0x07070707, every):
        wave = make_wave("gfx942", seed=selector & 0xFF)
        wave.s[3], wave.v[4] = chosen, chosen
        wanted = [picked(int(a), int(b), chosen) for a, b in zip(wave.v[1], wave.v[2], strict=True)]
        for source in ("s3", "v4"):
            execute(wave, "VOP3", "v_perm_b32", vdst="v7", src0="v1", src1="v2", src2=source)
            np.testing.assert_array_equal(wave.v[7], np.array(wanted, np.uint32))
