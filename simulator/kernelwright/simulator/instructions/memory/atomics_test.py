"""Atomics: each operation on each memory against Python, lanes that share an address, masks, what is returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_region, make_wave

BASE = 0x5555_0000_1000
M32, M64 = (1 << 32) - 1, (1 << 64) - 1
ODD = 0xB6DB_6DB6_DB6D_B6DB


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def table(bits: int) -> dict[str, Callable[[int, int], int]]:
    mask = (1 << bits) - 1
    return {
        "add": lambda old, new: old + new & mask,
        "sub": lambda old, new: old - new & mask,
        "smin": lambda old, new: min(old, new, key=lambda x: signed(x, bits)),
        "smax": lambda old, new: max(old, new, key=lambda x: signed(x, bits)),
        "umin": min,
        "umax": max,
        "and": lambda old, new: old & new,
        "or": lambda old, new: old | new,
        "xor": lambda old, new: old ^ new,
        "inc": lambda old, new: 0 if old >= new else old + 1,
        "dec": lambda old, new: new if old == 0 or old > new else old - 1,
        "swap": lambda old, new: new,
    }


LATER = {"add": "add_u", "sub": "sub_u", "smin": "min_i", "smax": "max_i", "umin": "min_u", "umax": "max_u"}
LATER |= {"and": "and_b", "or": "or_b", "xor": "xor_b", "inc": "inc_u", "dec": "dec_u", "swap": "swap_b"}


def name_of(arch: str, operation: str, bits: int) -> str:
    if arch.startswith("gfx9"):
        return operation + ("_x2" if bits == 64 else "")
    return f"{LATER[operation]}{bits}"


def global_atomic(wave: Wave, name: str, returned: bool, segment: str = "GLOBAL") -> None:
    """Address in v0 and v1, data from v4, result in v10."""
    arch = wave.target.name
    if arch == "gfx1201":
        fields: dict[str, Any] = {"vaddr": "v0", "vsrc": "v4", "vdst": "v10", "saddr": "s124", "th": int(returned)}
        segment = "V" + segment
    else:
        off, flag = ("s127", "sc0") if arch.startswith("gfx9") else ("s124", "glc")
        fields = {"addr": "v0", "data": "v4", "vdst": "v10", "saddr": off, flag: int(returned)}
    execute(wave, segment, f"{segment.lower().removeprefix('v')}_atomic_{name}", **fields)


def values_of(words: np.ndarray, bits: int) -> list[int]:
    return [int(x) for x in (words[0] if bits == 32 else words[0] | words[1].astype(np.uint64) << np.uint64(32))]


def set_up(arch: str, exec_bits: int | None, shared: int) -> tuple[Wave, np.ndarray]:
    """Addresses of which ``shared`` lanes each have the same; 8 bytes apart."""
    wave = make_wave(arch, exec_bits=exec_bits)
    data = np.random.default_rng(3).integers(0, 1 << 32, 256, np.uint32)
    region = make_region(BASE, data)
    wave.memory, wave.lds = Memory([region]), Lds(1024)
    wave.lds.words[:] = data
    at = np.random.default_rng(4).permutation(wave.lanes) // shared * 8
    wave.u[0][:], wave.u[1][:] = (BASE + at) & M32, BASE >> 32
    wave.u[2][:] = at
    wave.v[4:8] &= np.uint32(0xFFFF00FF)  # some equal bytes
    return wave, at


def expected(
    wave: Wave, at: np.ndarray, before: np.ndarray, bits: int, function: Callable[[int, int], int]
) -> tuple[np.ndarray, list[int]]:
    memory = before.copy().view(f"u{bits // 8}")
    data, old = values_of(wave.v[4:6], bits), []
    for lane in range(wave.lanes):
        index = at[lane] * 8 // bits
        old.append(int(memory[index]))
        if wave.mask[lane]:
            memory[index] = function(old[-1], data[lane])
    return memory.view(np.uint32), old


@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("operation", sorted(table(32)))
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize(("exec_bits", "shared"), [(None, 1), (ODD, 4)])
def test_integers(arch: str, operation: str, bits: int, exec_bits: int | None, shared: int) -> None:
    wave, at = set_up(arch, exec_bits, shared)
    region = wave.memory.regions[0]
    memory, old = expected(wave, at, region.words, bits, table(bits)[operation])
    result = wave.v[10:12].copy()
    global_atomic(wave, name_of(arch, operation, bits), returned=False)
    np.testing.assert_array_equal(region.words, memory)
    np.testing.assert_array_equal(wave.v[10:12], result)

    memory, old = expected(wave, at, region.words, bits, table(bits)[operation])
    global_atomic(wave, name_of(arch, operation, bits), returned=True)
    np.testing.assert_array_equal(region.words, memory)
    got, kept = values_of(wave.v[10:12], bits), values_of(result, bits)
    assert got == [old[lane] if wave.mask[lane] else kept[lane] for lane in range(wave.lanes)]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("operation", sorted(set(table(32)) - {"swap"}))
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("returned", [False, True])
def test_lds(arch: str, operation: str, bits: int, returned: bool) -> None:
    wave, at = set_up(arch, ODD, 2)
    stem, kind = LATER[operation].split("_")
    memory, old = expected(wave, at, wave.lds.words, bits, table(bits)[operation])
    result = wave.v[10:12].copy()
    name = f"ds_{stem}_{'rtn_' if returned else ''}{kind}{bits}"
    execute(wave, "DS", name, addr="v2", data0="v4", vdst="v10")
    np.testing.assert_array_equal(wave.lds.words, memory)
    got, kept = values_of(wave.v[10:12], bits), values_of(result, bits)
    assert got == [old[lane] if wave.mask[lane] and returned else kept[lane] for lane in range(wave.lanes)]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("where", ["GLOBAL", "FLAT", "DS"])
def test_compare_and_swap(arch: str, bits: int, where: str) -> None:
    """Half of the lanes compare equal. gfx9's LDS form has the two data the other way round."""
    wave, at = set_up(arch, None, 1)
    dwords = bits // 32
    memory = (wave.lds.words if where == "DS" else wave.memory.regions[0].words).copy()
    old = memory[(at // 4)[None] + np.arange(dwords)[:, None]]
    even = np.arange(wave.lanes) % 2 == 0
    compared = np.where(even, old, old + np.uint32(1))
    gfx9 = arch.startswith("gfx9")
    swapped = where == "DS" and gfx9
    new = wave.v[4 : 4 + dwords].copy()
    first, second = (compared, new) if swapped else (new, compared)
    wave.v[4 : 4 + dwords], wave.v[4 + dwords : 4 + 2 * dwords] = first, second
    if where == "DS":
        name = f"ds_{'cmpst' if gfx9 else 'cmpstore'}_rtn_b{bits}"
        execute(wave, "DS", name, addr="v2", data0="v4", data1=f"v{4 + dwords}", vdst="v10")
        after = wave.lds.words
    else:
        global_atomic(wave, f"cmpswap{('_x2' if bits == 64 else '') if gfx9 else f'_b{bits}'}", True, where)
        after = wave.memory.regions[0].words
    np.testing.assert_array_equal(wave.v[10 : 10 + dwords], old)
    memory[(at // 4)[None] + np.arange(dwords)[:, None]] = np.where(even, new, old)
    np.testing.assert_array_equal(after, memory)


FLOATS = [
    ("gfx90a", "GLOBAL", "add_f32", np.float32),
    ("gfx90a", "GLOBAL", "add_f64", np.float64),
    ("gfx90a", "GLOBAL", "pk_add_f16", np.float16),
    ("gfx942", "GLOBAL", "pk_add_bf16", ml_dtypes.bfloat16),
    ("gfx942", "FLAT", "add_f32", np.float32),
    ("gfx1100", "GLOBAL", "add_f32", np.float32),
    ("gfx1201", "GLOBAL", "pk_add_bf16", ml_dtypes.bfloat16),
    ("gfx1201", "GLOBAL", "pk_add_f16", np.float16),
    ("gfx942", "DS", "add_f32", np.float32),
    ("gfx942", "DS", "add_f64", np.float64),
    ("gfx942", "DS", "pk_add_f16", np.float16),
    ("gfx942", "DS", "pk_add_bf16", ml_dtypes.bfloat16),
    ("gfx1201", "DS", "pk_add_bf16", ml_dtypes.bfloat16),
]


@pytest.mark.parametrize(("arch", "where", "name", "dtype"), FLOATS)
def test_floats(arch: str, where: str, name: str, dtype: Any) -> None:
    wave, at = set_up(arch, ODD, 4)
    random = np.random.default_rng(5)
    size = np.dtype(dtype).itemsize
    words = random.normal(size=1024 // size).astype(dtype).view(np.uint32)
    (wave.lds if where == "DS" else wave.memory.regions[0]).words[:] = words
    data = random.normal(size=(wave.lanes, 8 // size)).astype(dtype)
    wave.v[4:6] = data.view(np.uint32).T
    memory = words.view(dtype).copy()
    for lane in np.flatnonzero(wave.mask):
        for element in range(max(1, 4 // size)):
            memory[at[lane] // size + element] = memory[at[lane] // size + element] + data[lane, element]
    if where == "DS":
        execute(wave, "DS", f"ds_{name}", addr="v2", data0="v4")
        after = wave.lds.words
    else:
        global_atomic(wave, name, False, where)
        after = wave.memory.regions[0].words
    np.testing.assert_array_equal(after, memory.view(np.uint32))


@pytest.mark.parametrize(
    ("arch", "name", "dtype", "function"),
    [
        ("gfx90a", "min_f64", np.float64, min),
        ("gfx942", "max_f64", np.float64, max),
        ("gfx1100", "max_f32", np.float32, max),
        ("gfx1201", "min_num_f32", np.float32, min),
    ],
)
def test_extremes_of_floats(arch: str, name: str, dtype: Any, function: Callable[[Any, Any], Any]) -> None:
    wave, at = set_up(arch, None, 2)
    size = np.dtype(dtype).itemsize
    words = np.random.default_rng(6).normal(size=1024 // size).astype(dtype)
    wave.memory.regions[0].words[:] = words.view(np.uint32)
    data = np.random.default_rng(7).normal(size=(wave.lanes, 8 // size)).astype(dtype)
    wave.v[4:6] = data.view(np.uint32).T
    global_atomic(wave, name, returned=False)
    for lane in range(wave.lanes):
        words[at[lane] // size] = function(words[at[lane] // size], data[lane, 0])
    np.testing.assert_array_equal(wave.memory.regions[0].words, words.view(np.uint32))


def test_special_differences() -> None:
    """What only RDNA has."""
    for name, function in (
        ("sub_clamp_u32", lambda old, new: max(0, old - new)),
        ("cond_sub_u32", lambda old, new: old - new if old >= new else old),
    ):
        wave, at = set_up("gfx1201", None, 2)
        memory, _ = expected(wave, at, wave.lds.words, 32, function)
        execute(wave, "DS", f"ds_{name}", addr="v2", data0="v4")
        np.testing.assert_array_equal(wave.lds.words, memory)


def test_bounds_and_alignment() -> None:
    wave, _ = set_up("gfx942", None, 1)
    wave.u[0][5] += 4
    with pytest.raises(Trap, match="an atomic of 8 bytes is not aligned"):
        global_atomic(wave, "add_x2", returned=False)
    wave.u[0][5] += 4096
    with pytest.raises(Trap, match="an atomic of 4 bytes outside all registered memory"):
        global_atomic(wave, "add", returned=False)
    wave.u[2][5] = 1024
    with pytest.raises(Trap, match="outside LDS"):
        execute(wave, "DS", "ds_add_u32", addr="v2", data0="v4")
    wave.memory = Memory([make_region(BASE, np.zeros(256, np.uint32), writable=False)])
    wave.u[0][5] = BASE & M32
    with pytest.raises(Trap, match="read-only"):
        global_atomic(wave, "add", returned=False)


@pytest.mark.parametrize(("arch", "name"), [("gfx942", "add_f32"), ("gfx1100", "add_f32"), ("gfx1201", "add_f32")])
@pytest.mark.parametrize("returned", [0, 1])
def test_buffers(arch: str, name: str, returned: int) -> None:
    """Lanes behind num_records do nothing and get 0."""
    wave, _ = set_up(arch, ODD, 1)
    words = wave.memory.regions[0].words
    words[:] = np.arange(256, dtype=np.float32).view(np.uint32)
    records = 4 * wave.lanes - 40
    flags = 0x00020000 if arch == "gfx942" else 0x31004000
    wave.s[8:12] = [BASE & M32, BASE >> 32, records, flags]
    wave.u[0][:] = np.arange(wave.lanes) * 4
    wave.f[4][:] = data = np.arange(wave.lanes) + np.float32(0.5)
    fields: dict[str, Any] = {"vdata": "v4", "vaddr": "v0", "soffset": 0, "offen": 1}
    if arch == "gfx1201":
        execute(wave, "VBUFFER", f"buffer_atomic_{name}", rsrc=8, th=returned, **fields | {"soffset": "s124"})
    else:
        flag = "sc0" if arch == "gfx942" else "glc"
        execute(wave, "MUBUF", f"buffer_atomic_{name}", srsrc="s8", **fields, **{flag: returned})
    inside = np.arange(wave.lanes) * 4 < records
    wanted = np.arange(256, dtype=np.float32)
    wanted[: wave.lanes] += np.where(inside & wave.mask, data, 0)
    np.testing.assert_array_equal(words.view(np.float32), wanted)
    old = np.where(inside, np.arange(wave.lanes), 0)
    np.testing.assert_array_equal(wave.f[4], np.where(wave.mask, old, data) if returned else data)
