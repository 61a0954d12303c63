from __future__ import annotations

from typing import Any

import msgpack
import pytest

from kernelwright.simulator.code.arguments import Arguments, HiddenArgument, read_arguments


def note(*arguments: dict[str, Any], room: int = 64) -> bytes:
    kernel = {".symbol": "k.kd", ".kernarg_segment_size": room, ".args": list(arguments)}
    return bytes(msgpack.packb({"amdhsa.kernels": [kernel], "amdhsa.version": [1, 2]}))


def argument(kind: str, offset: int, size: int) -> dict[str, Any]:
    return {".value_kind": kind, ".offset": offset, ".size": size}


def test_explicit_arguments_end_before_hidden_ones() -> None:
    read = read_arguments(
        note(argument("global_buffer", 0, 8), argument("by_value", 8, 40), argument("hidden_block_count_x", 48, 4))
    )
    assert read == {"k": Arguments(48, (HiddenArgument("block_count_x", 48, 4),))}


def test_bytes_that_fill_the_last_word_are_ignored() -> None:
    assert read_arguments(note() + b"\0\0\0") == {"k": Arguments(0, ())}


@pytest.mark.parametrize("at", [(60, 8), (-8, 8), (0, -1)])
def test_an_argument_lies_inside_its_segment(at: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="lies outside the 64 bytes"):
        read_arguments(note(argument("by_value", *at)))


@pytest.mark.parametrize("damaged", [b"", note()[:-3], b"\xa5abc", b"\x91" * 5000])
def test_damage_is_a_value_error(damaged: bytes) -> None:
    with pytest.raises(ValueError):
        read_arguments(damaged)
