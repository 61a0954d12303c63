"""LDS and scratch: bounds, alignment, atomics."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Trap
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.scratch import Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.machine.words import POISON


def wave(lds: Lds) -> Wave:
    return Wave(TARGETS["gfx942"], lds, None)  # type: ignore[arg-type]


def at(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize("offset", [0, 1, 2, 4, 8])
def test_round_trip(offset: int) -> None:
    lds = Lds(128)
    data = np.arange(8, dtype=np.uint32).reshape(4, 2) + np.uint32(0x01020304)
    where = at(offset, 64 + offset)
    lds.store(wave(lds), where, data)
    assert (lds.load(wave(lds), where, 4) == data).all()
    assert lds.load(wave(lds), at(96), 1) == POISON


@pytest.mark.parametrize(("address", "dwords"), [(64, 1), (60, 2), (-4, 1), (61, 1), (1 << 31, 1)])
def test_outside_traps(address: int, dwords: int) -> None:
    lds = Lds(64)
    with pytest.raises(Trap, match="64 bytes") as caught:
        lds.load(wave(lds), at(0, address), dwords)
    assert caught.value.address == address
    with pytest.raises(Trap, match="outside LDS"):
        lds.store(wave(lds), at(0, address), np.zeros((dwords, 2), np.uint32))


def test_size_that_is_no_multiple_of_a_dword() -> None:
    lds = Lds(6)
    lds.store_small(wave(lds), at(4), np.array([0xFFFF1234], np.uint32), 2)
    assert lds.load_small(wave(lds), at(4), 2) == 0x1234
    with pytest.raises(Trap):
        lds.load(wave(lds), at(4), 1)
    with pytest.raises(Trap):
        lds.load_small(wave(lds), at(6), 1)


def test_atomic_order_and_alignment() -> None:
    lds = Lds(16)
    lds.words[:] = 5
    before = lds.atomic(wave(lds), at(4, 4, 8), 1, lambda old, lanes: old + np.array([1, 2, 3], np.uint32)[lanes])
    assert before.tolist() == [[5, 6, 5]]
    assert lds.words.tolist() == [5, 8, 8, 5]
    with pytest.raises(Trap, match="not aligned"):
        lds.atomic(wave(lds), at(4), 2, lambda old, lanes: old)


def test_scratch_rows_and_bytes_agree() -> None:
    scratch = Scratch(32, 64)
    one = wave(Lds(0))
    data = np.arange(128, dtype=np.uint32).reshape(2, 64) * np.uint32(0x10101)
    scratch.store_row(one, 8, data)
    lanes = np.arange(64)
    assert (data == scratch.load(one, lanes, np.full(64, 8), 8).view(np.uint32).T).all()
    scratch.store(one, lanes[3:5], at(9, 11), np.array([[1, 2], [3, 4]], np.uint8))
    assert scratch.load(one, lanes[3:5], at(8, 10), 4).tolist() == [[3, 1, 2, 0], [4, 3, 4, 68]]
    assert (scratch.load_row(one, 8, 2)[:, 5:] == data[:, 5:]).all()


def test_scratch_masks_and_bounds() -> None:
    scratch = Scratch(16, 64)
    one = wave(Lds(0))
    one.set_exec(2)
    scratch.store_row(one, 12, np.ones((1, 64), np.uint32))
    assert scratch.words[3, :3].tolist() == [POISON, 1, POISON]
    with pytest.raises(Trap, match="16 bytes"):
        scratch.load_row(one, 12, 2)
    with pytest.raises(Trap, match="outside scratch"):
        scratch.store(one, at(0), at(-1), np.zeros((1, 1), np.uint8))
