from __future__ import annotations

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

M32, M64 = 0xFFFFFFFF, (1 << 64) - 1
ACTIVE = 0xF00F_1234_5678_9ABD


def put(wave: Wave, row: int, values: list[int]) -> None:
    wave.v[row] = np.array([value & M32 for value in values], np.uint32)
    wave.v[row + 1] = np.array([value >> 32 & M32 for value in values], np.uint32)


def take(wave: Wave, row: int) -> list[int]:
    return [int(low) | int(high) << 32 for low, high in zip(wave.v[row], wave.v[row + 1], strict=True)]


def numbers(seed: int, bits: int, lanes: int) -> list[int]:
    random = np.random.default_rng(seed)
    ends = [0, 1, (1 << bits) - 1, 1 << bits - 1, (1 << bits - 1) - 1]
    return [ends[n % 5] if n % 3 == 0 else int.from_bytes(random.bytes(bits // 8), "little") for n in range(lanes)]


def signed(value: int, bits: int) -> int:
    return (value ^ 1 << bits - 1) - (1 << bits - 1)


@pytest.mark.parametrize(("target", "name"), [("gfx942", "v_mad_u64_u32"), ("gfx1201", "v_mad_co_u64_u32")])
def test_mad_u64_with_its_carry(target: str, name: str) -> None:
    wave = make_wave(target, exec_bits=ACTIVE)
    a, b, c = (numbers(seed, bits, wave.lanes) for seed, bits in ((1, 32), (2, 32), (3, 64)))
    wave.v[1], wave.v[2] = np.array(a, np.uint32), np.array(b, np.uint32)
    put(wave, 4, c)
    before = take(wave, 8)
    execute(wave, "VOP3SD", name, vdst="v8", sdst="s10", src0="v1", src1="v2", src2="v4")
    exact = [x * y + z for x, y, z in zip(a, b, c, strict=True)]
    active = [wave.exec >> lane & 1 for lane in range(wave.lanes)]
    assert take(wave, 8) == [x & M64 if on else old for x, on, old in zip(exact, active, before, strict=True)]
    carries = sum((x >> 64 & on) << lane for lane, (x, on) in enumerate(zip(exact, active, strict=True)))
    assert wave.read_mask(10) == carries and carries


def test_mad_i64() -> None:
    wave = make_wave("gfx942")
    a, b, c = (numbers(seed, bits, 64) for seed, bits in ((1, 32), (2, 32), (3, 64)))
    wave.v[1], wave.v[2] = np.array(a, np.uint32), np.array(b, np.uint32)
    put(wave, 4, c)
    execute(wave, "VOP3SD", "v_mad_i64_i32", vdst="v8", sdst="s10", src0="v1", src1="v2", src2="v4")
    exact = [signed(x, 32) * signed(y, 32) + signed(z, 64) for x, y, z in zip(a, b, c, strict=True)]
    assert take(wave, 8) == [x & M64 for x in exact]


def test_shifts_and_sums_of_64_bits() -> None:
    wave = make_wave("gfx942")
    values, more = numbers(4, 64, 64), numbers(5, 64, 64)
    shifts = [lane + 64 * (lane % 3) for lane in range(64)]
    wave.v[1] = np.array(shifts, np.uint32)
    put(wave, 2, values)
    put(wave, 4, more)
    execute(wave, "VOP3", "v_lshlrev_b64", vdst="v8", src0="v1", src1="v2")
    assert take(wave, 8) == [x << (n & 63) & M64 for x, n in zip(values, shifts, strict=True)]
    execute(wave, "VOP3", "v_lshrrev_b64", vdst="v8", src0="v1", src1="v2")
    assert take(wave, 8) == [x >> (n & 63) for x, n in zip(values, shifts, strict=True)]
    execute(wave, "VOP3", "v_ashrrev_i64", vdst="v8", src0="v1", src1="v2")
    assert take(wave, 8) == [signed(x, 64) >> (n & 63) & M64 for x, n in zip(values, shifts, strict=True)]
    execute(wave, "VOP3", "v_lshl_add_u64", vdst="v8", src0="v2", src1=3, src2="v4")
    assert take(wave, 8) == [(x << 3) + y & M64 for x, y in zip(values, more, strict=True)]


@pytest.mark.parametrize("width", [2, 3])
def test_carry_chains_add_and_subtract_long_numbers(width: int) -> None:
    """Numbers of several words through v_add_co, v_addc_co and their counterparts, with VCC between the words."""
    for first, next_, sign in (("v_add_co_u32", "v_addc_co_u32", 1), ("v_sub_co_u32", "v_subb_co_u32", -1)):
        wave = make_wave("gfx942", exec_bits=ACTIVE)
        a, b = numbers(6, 32 * width, 64), numbers(7, 32 * width, 64)
        for word in range(width):
            wave.v[1 + word] = np.array([x >> 32 * word & M32 for x in a], np.uint32)
            wave.v[11 + word] = np.array([x >> 32 * word & M32 for x in b], np.uint32)
        for word in range(width):
            name = next_ if word else first
            execute(wave, "VOP2", name, vdst=f"v{21 + word}", src0=f"v{1 + word}", vsrc1=f"v{11 + word}")
        for lane in range(64):
            exact = a[lane] + sign * b[lane]
            carry = wave.read_mask(106) >> lane & 1
            if not wave.exec >> lane & 1:
                assert carry == 0
                continue
            assert sum(int(wave.v[21 + word][lane]) << 32 * word for word in range(width)) == exact % (1 << 32 * width)
            assert carry == (exact >> 32 * width != 0)


def test_carries_in_named_registers() -> None:
    wave = make_wave("gfx1201")
    wave.v[1], wave.v[2] = np.uint32(M32), np.arange(32, dtype=np.uint32)
    wave.s[4] = 0x0000FFFF
    execute(wave, "VOP3SD", "v_add_co_ci_u32", vdst="v3", sdst="s6", src0="v1", src1="v2", src2="s4")
    wanted = [M32 + lane + (lane < 16) for lane in range(32)]
    assert wave.v[3].tolist() == [x & M32 for x in wanted]
    assert wave.s[6] == sum((x >> 32) << lane for lane, x in enumerate(wanted))
    execute(wave, "VOP3SD", "v_subrev_co_u32", vdst="v3", sdst="s6", src0="v2", src1=3)
    assert wave.v[3].tolist() == [3 - lane & M32 for lane in range(32)]
    assert wave.s[6] == sum((lane > 3) << lane for lane in range(32))
