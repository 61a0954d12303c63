from __future__ import annotations

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


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 5000), st.integers(0, 255))
def test_damage_is_reported_and_never_crashes(at: int, value: int) -> None:
    data = bytearray(example())
    data[at % len(data)] = value
    for image in (bytes(data), bytes(data[: at % len(data)])):
        with suppress(ObjectError):
            read_code_object(image).kernels  # noqa: B018
