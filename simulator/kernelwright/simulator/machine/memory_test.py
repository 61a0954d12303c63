"""Global memory: regions, faults, unaligned access, the order of atomics."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.memory import Memory, Region
from kernelwright.simulator.machine.wave import Wave


def region(address: int, nbytes: int, writable: bool = True, name: str = "") -> Region:
    """A region with bytes 0, 1, 2, … whose data lies as its address does modulo 16."""
    data = np.zeros(nbytes + 32, np.uint8)
    skip = (address - data.ctypes.data) % 16
    data[skip : skip + nbytes] = np.arange(nbytes, dtype=np.uint64).astype(np.uint8)
    return Region(address, data[skip : skip + nbytes], writable, name)


def addresses(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def wave() -> Wave:
    return Wave(TARGETS["gfx942"], None, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("base", [0x1000, 0x1001, 0x1002, 0x7F00_0000_1003])
@pytest.mark.parametrize("offset", [0, 1, 2, 4, 12, 32])
def test_loads_any_alignment(base: int, offset: int) -> None:
    memory = Memory([region(base, 64)])
    loaded = memory.load(wave(), addresses(base + offset, base), 4)
    assert loaded.shape == (4, 2)
    assert loaded.T.copy().view(np.uint8)[0].tolist() == list(range(offset, offset + 16))


def test_lanes_in_several_regions() -> None:
    memory = Memory([region(0x2000, 16), region(0x1000, 16)])
    assert memory.load(wave(), addresses(0x1004, 0x2008), 1).tolist() == [[0x07060504, 0x0B0A0908]]


@pytest.mark.parametrize("address", [0xFFC, 0xFFF, 0x103D, 0x1040, 0, 0x1FFFFFFFF])
def test_outside_traps_with_the_nearest_region(address: int) -> None:
    memory = Memory([region(0x1000, 64, name="A"), region(0x9000, 64, name="B")])
    for access in (
        lambda: memory.load(wave(), addresses(0x1000, address), 1),
        lambda: memory.store(wave(), addresses(0x1000, address), np.zeros((1, 2), np.uint32)),
        lambda: memory.load_scalar(wave(), address, 1),
    ):
        with pytest.raises(Trap, match=r"(A at 0x1000|B at 0x9000) \(64 bytes") as caught:
            access()
        assert caught.value.address == address


def test_an_access_must_not_straddle_two_regions() -> None:
    memory = Memory([region(0x1000, 16), region(0x1010, 16)])
    with pytest.raises(Trap, match="outside"):
        memory.load(wave(), addresses(0x1008), 4)


def test_read_only() -> None:
    memory = Memory([region(0x1000, 64, writable=False, name="A")])
    for store in (
        lambda: memory.store(wave(), addresses(0x1000), np.zeros((1, 1), np.uint32)),
        lambda: memory.store_small(wave(), addresses(0x1000), np.zeros(1, np.uint32), 1),
        lambda: memory.atomic(wave(), addresses(0x1000), 1, lambda old, lanes: old),
    ):
        with pytest.raises(Trap, match="read-only"):
            store()


@pytest.mark.parametrize("nbytes", [1, 2])
@pytest.mark.parametrize("offset", [0, 1, 3])
def test_small(nbytes: int, offset: int) -> None:
    memory = Memory([region(0x1000, 16)])
    at = addresses(0x1000 + offset, 0x1008)
    memory.store_small(wave(), at, np.array([0xAABBCCDD, 0x11223344], np.uint32), nbytes)
    assert memory.load_small(wave(), at, nbytes).tolist() == ([0xDD, 0x44] if nbytes == 1 else [0xCCDD, 0x3344])
    assert memory.load_small(wave(), at + np.uint64(nbytes), 1).tolist() == [offset + nbytes, 8 + nbytes]


@pytest.mark.parametrize("base", [0x1000, 0x1002])
def test_store_round_trip(base: int) -> None:
    memory = Memory([region(base, 64)])
    data = np.arange(8, dtype=np.uint32).reshape(4, 2) * np.uint32(0x01010101)
    memory.store(wave(), addresses(base + 2, base + 32), data)
    assert (memory.load(wave(), addresses(base + 2, base + 32), 4) == data).all()
    assert memory.regions[0].data[:2].tolist() == [0, 1]
    assert memory.regions[0].data[18] == 18


def test_atomics_take_turns_in_lane_order() -> None:
    memory = Memory([region(0x1000, 64)])
    at = addresses(0x1004, 0x1008, 0x1004, 0x1004)
    operand = np.array([10, 20, 30, 40], np.uint32)
    before = memory.atomic(wave(), at, 1, lambda old, lanes: operand[lanes][None])
    assert before.tolist() == [[0x07060504, 0x0B0A0908, 10, 30]]
    assert memory.load(wave(), at[:2], 1).tolist() == [[40, 20]]


def test_atomics_must_be_aligned() -> None:
    memory = Memory([region(0x1000, 64)])
    with pytest.raises(Trap, match="not aligned"):
        memory.atomic(wave(), addresses(0x1004), 2, lambda old, lanes: old)


def test_scalar_load() -> None:
    memory = Memory([region(0x1002, 64)])
    assert memory.load_scalar(wave(), 0x1004, 2) == [0x05040302, 0x09080706]


def test_data_at_another_alignment_is_refused() -> None:
    with pytest.raises(ValueError, match="modulo 16"):
        Region(region(0x1000, 64).address + 4, region(0x1000, 64).data)
