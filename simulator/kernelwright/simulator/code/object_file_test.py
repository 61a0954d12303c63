from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.code.object_file import images, read_code_object
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import ObjectError
from kernelwright.simulator.testing.objects import Kernel, assemble_text, make_object

END = ("SOPP", "s_endpgm")


def example(arch: str = "gfx942") -> bytes:
    text = assemble_text(arch, [END])
    return make_object(arch, {"first": Kernel(text, lds=256, arguments=24), "second": Kernel(text, scratch=16)})


@pytest.mark.parametrize("arch", TARGETS)
def test_kernels_and_text_are_found(arch: str) -> None:
    code = read_code_object(example(arch))
    assert code.target.name == arch
    assert set(code.kernels) == {"first", "second"}
    first, second = code.kernel("first"), code.kernel("second")
    assert (first.lds_bytes, first.kernarg_bytes, first.scratch_bytes) == (256, 24, 0)
    assert (second.scratch_bytes, second.private_segment) == (16, True)
    assert first.user_sgprs == {"kernarg_segment_ptr": 0}
    assert first.workgroup_ids == (True, True, True)
    assert second.entry - first.entry == 256
    entry = first.entry - code.text_start
    assert code.text[entry : entry + 4] == assemble_text(arch, [END])
    assert code.function_at(entry).name == "first"


def test_every_code_object_in_a_library_is_found() -> None:
    one, two = example("gfx942"), example("gfx1100")
    assert images(b"\x7fELF\x02\x01 no" + one + b"#" * 11 + two) == (one, two)
    assert images(one) == (one,)
    with pytest.raises(ObjectError, match="no AMDGPU code object"):
        images(b"\x7fELF\x02\x01" + bytes(100))


def test_what_cannot_run_is_refused() -> None:
    data = bytearray(example())
    with pytest.raises(ObjectError, match="has no kernel 'third'; it has: first, second"):
        read_code_object(bytes(data)).kernel("third")
    data[48] = 0x30  # e_flags: another architecture
    with pytest.raises(ObjectError, match="machine is 0x30; simulated: gfx90a, gfx942"):
        read_code_object(bytes(data))
    data[18] = 62
    with pytest.raises(ObjectError, match="not an AMDGPU code object"):
        read_code_object(bytes(data))
    with pytest.raises(ObjectError, match="not a 64-bit little-endian ELF"):
        read_code_object(b"#!/bin/sh")


# Offsets in the ELF header: where its tables are, how large their entries are, and how many there are.
@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({32: b"\xff" * 8}, "cut off or damaged"),  # e_phoff
        ({40: b"\xff" * 8}, "cut off or damaged"),  # e_shoff
        ({40: b"\xff\xff\0"}, "cut off or damaged: Reading section 0 .* past EOF"),
        ({54: b"\x20"}, "entries have unknown sizes"),  # e_phentsize
        ({58: b"\0"}, "entries have unknown sizes"),  # e_shentsize
        ({32: b"\0" * 8, 54: b"\0\0\xff\xff"}, "entries have unknown sizes"),  # 2**32 segments of 0 bytes
        ({56: b"\0"}, "no segments to load"),  # e_phnum
        ({56: b"\x01"}, "one executable segment, this one 0"),
        ({56: b"\xff\xff"}, "no segments to load"),  # section 0, which is empty, has the number then
    ],
)
def test_damaged_headers_are_object_errors(damage: dict[int, bytes], reason: str) -> None:
    data = bytearray(example())
    for at, replaced in damage.items():
        data[at : at + len(replaced)] = replaced
    with pytest.raises(ObjectError, match=reason):
        read_code_object(bytes(data))


def test_a_symbol_table_that_pyelftools_refuses_is_an_object_error() -> None:
    data = bytearray(example())
    (sections,) = struct.unpack_from("<Q", data, 40)
    data[sections + 64 + 32] ^= 1  # sh_size of the symbol table
    with pytest.raises(ObjectError, match="cut off or damaged: Expected section size to be a multiple"):
        read_code_object(bytes(data))
    with pytest.raises(ObjectError, match="the ELF header is cut off: 40 bytes"):
        read_code_object(bytes(data[:40]))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 5000), st.integers(0, 255))
def test_damage_is_reported_and_never_crashes(at: int, value: int) -> None:
    data = bytearray(example())
    data[at % len(data)] = value
    for image in (bytes(data), bytes(data[: at % len(data)])):
        with suppress(ObjectError):
            read_code_object(image).kernels  # noqa: B018
