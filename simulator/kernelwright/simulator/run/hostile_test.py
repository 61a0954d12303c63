"""Code objects with changed bytes: each runs to its end or is refused with an error of the simulator, in bounded time.

``KERNELWRIGHT_FUZZ=100000`` changes as many as that (CI changes fewer).
"""

from __future__ import annotations

import os
import random
import signal
import struct
from collections.abc import Iterator

import numpy as np
import pytest

from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object, run_lines

CHANGED = int(os.environ.get("KERNELWRIGHT_FUZZ", "300"))
LIMIT_S = 60  # each ends within 3 s on a busy machine
LINES: list[Line] = [
    ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
    ("VOP1", "v_mov_b32", {"vdst": "v9", "src0": 0}),
    ("DS", "ds_write_b32", {"addr": "v9", "data0": "v9"}),
    ("VOP2", "v_add_u32", {"vdst": "v3", "src0": 1, "vsrc1": "v3"}),
    ("DS", "ds_read_b32", {"vdst": "v3", "addr": "v9"}),
    ("SOPP", "s_barrier"),
    ("GLOBAL", "global_store_dword", {"addr": "v9", "saddr": "s6", "data": "v3"}),
    ("SOPP", "s_endpgm"),
]
TEXT = assemble_text("gfx942", LINES)
PLACES = ((0, 1 << 30), (0x1000, 0x1000 + len(TEXT)), (0, 0x100), (0x400, 0x600))
# All of the file, its instructions, its header and segments, the kernel's descriptor.


@pytest.fixture
def alarm() -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, late)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def changed(image: bytes, dice: random.Random) -> bytes:
    data = bytearray(image)
    first, last = dice.choice(PLACES)
    for _ in range(dice.choice((1, 1, 2, 8, 64))):
        data[dice.randrange(first, min(last, len(data)))] = dice.randrange(256)
    return bytes(data[: dice.randrange(len(data))] if dice.random() < 0.1 else data)


def test_changed_code_objects_run_or_are_refused(alarm: None) -> None:
    image, dice, refused = make_object("gfx942", {"k": Kernel(TEXT, lds=64)}), random.Random(1), 0
    for number in range(CHANGED):
        memory = np.zeros(3 * 64, np.uint32)  # the kernel's part is in the middle
        out = memory[64:128]
        arguments = struct.pack("<Q", out.ctypes.data)
        signal.alarm(LIMIT_S)
        try:
            Simulator(steps=20_000).launch(
                changed(image, dice),
                "k",
                grid=(2, 1, 1),
                block=(64, 1, 1),
                arguments=arguments,
                buffers=[Buffer(out.ctypes.data, out.nbytes, name="out")],
            )
        except SimulatorError:
            refused += 1
        except Exception as error:
            raise AssertionError(f"change {number}: {error!r}") from error
        assert not memory[:64].any() and not memory[128:].any(), f"change {number} wrote outside"
    assert CHANGED // 4 < refused < CHANGED


def test_an_endless_loop_ends_with_its_place() -> None:
    with pytest.raises(
        Fault, match=r"an endless loop\? The workgroup has executed 100000 instructions; wave 0: stands"
    ):
        run_lines("gfx942", [("SOPP", "s_branch", {"simm16": 0xFFFF})], simulator=Simulator(steps=100_000))
