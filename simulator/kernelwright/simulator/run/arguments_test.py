"""Launches give all explicit arguments; hidden arguments come from the simulator, where the metadata says."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import ObjectError, SimulatorError
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object

HIDDEN = (
    ("block_count_x", 200, 4), ("block_count_y", 204, 4), ("block_count_z", 208, 4),
    ("group_size_x", 212, 2), ("group_size_y", 214, 2), ("group_size_z", 216, 2), ("remainder_x", 218, 2),
    ("global_offset_x", 240, 8), ("grid_dims", 264, 2), ("dynamic_lds_size", 320, 4), ("queue_ptr", 392, 8),
)  # fmt: skip
SIZES: dict[str, Any] = {"grid": (3, 2, 1), "block": (4, 2, 1), "buffers": []}


def image(**kernel: Any) -> bytes:
    return make_object("gfx942", {"k": Kernel(assemble_text("gfx942", [("SOPP", "s_endpgm")]), **kernel)})


@pytest.mark.parametrize("given", [0, 64, 100, 191])
@pytest.mark.parametrize("hidden", [None, ()])
def test_missing_arguments_are_refused_with_both_numbers(given: int, hidden: Any) -> None:
    made = image(arguments=192, hidden=hidden)
    Simulator().launch(made, "k", arguments=bytes(192), **SIZES)
    with pytest.raises(SimulatorError, match=f"kernel k takes 192 bytes of arguments; {given} given"):
        Simulator().launch(made, "k", arguments=bytes(given), **SIZES)


def test_hidden_arguments_are_not_asked_for() -> None:
    made = image(arguments=456, hidden=HIDDEN)
    Simulator().launch(made, "k", arguments=bytes(200), **SIZES)
    reason = "takes 200 bytes of arguments and 11 hidden ones, which are not given; 199 given"
    with pytest.raises(SimulatorError, match=reason):
        Simulator().launch(made, "k", arguments=bytes(199), **SIZES)


def test_hidden_arguments_are_where_the_metadata_says() -> None:
    def copied(offset: int, at: int) -> list[Line]:
        """out[at] = the dword of the argument segment at that offset."""
        return [
            ("SMEM", "s_load_dword", {"sdata": "s8", "sbase": "s0", "imm": 1, "offset": offset}),
            ("SOPP", "s_waitcnt", {"simm16": 0}),
            ("VOP1", "v_mov_b32", {"vdst": "v2", "src0": "s8"}),
            ("GLOBAL", "global_store_dword", {"addr": "v1", "saddr": "s6", "data": "v2", "offset": 4 * at}),
        ]

    lines: list[Line] = [
        ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
        ("VOP1", "v_mov_b32", {"vdst": "v1", "src0": 0}),
    ]
    offsets = (200, 204, 208, 212, 216, 240, 264, 320, 392, 196)
    for at, offset in enumerate(offsets):
        lines += copied(offset, at)
    text = assemble_text("gfx942", [*lines, ("SOPP", "s_endpgm")])
    made = make_object("gfx942", {"k": Kernel(text, arguments=456, hidden=HIDDEN)})
    out = np.full(len(offsets), 99, np.uint32)
    arguments = struct.pack("<Q", out.ctypes.data) + bytes(188) + struct.pack("<I", 77)
    sizes = SIZES | {"buffers": [Buffer(out.ctypes.data, out.nbytes)]}
    Simulator().launch(made, "k", arguments=arguments, dynamic_lds=48, **sizes)
    assert out.tolist() == [3, 2, 1, 4 | 2 << 16, 1, 0, 2, 48, 0, 77]


def test_metadata_that_is_damaged_is_an_object_error() -> None:
    with pytest.raises(ObjectError, match="an argument at 4 of 8 bytes lies outside the 8 bytes of its kernel"):
        Simulator().launch(image(hidden=(("queue_ptr", 4, 8),)), "k", arguments=bytes(8), **SIZES)
    made = image(hidden=())
    with pytest.raises(ObjectError, match="cut off or damaged"):
        Simulator().launch(made.replace(b"amdhsa.kernels", b"amdhsa.kernelz"), "k", arguments=bytes(8), **SIZES)
