from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.simulator.code.messagepack import unpack

VALUES: list[tuple[bytes, Any]] = [
    (b"\x05", 5),
    (b"\xff", -1),
    (b"\xc0", None),
    (b"\xc2", False),
    (b"\xc3", True),
    (b"\xcc\xc0", 192),
    (b"\xcd\x01\x00", 256),
    (b"\xce\x00\x01\x00\x00", 65536),
    (b"\xcf" + bytes(7) + b"\x09", 9),
    (b"\xd0\x80", -128),
    (b"\xd1\xff\xfe", -2),
    (b"\xca\x3f\x80\x00\x00", 1.0),
    (b"\xa3one", "one"),
    (b"\xbf" + b"x" * 31, "x" * 31),
    (b"\xd9\x20" + b"y" * 32, "y" * 32),
    (b"\xda\x00\x01z", "z"),
    (b"\xc4\x02\x00\x01", b"\x00\x01"),
    (b"\x92\x01\x91\xa1a", [1, ["a"]]),
    (b"\xdc\x00\x02\x01\x02", [1, 2]),
    (b"\x82\xa1a\x01\xa1b\x90", {"a": 1, "b": []}),
    (b"\xde\x00\x01\xa1a\x80", {"a": {}}),
]


@pytest.mark.parametrize(("data", "value"), VALUES)
def test_values_of_every_type(data: bytes, value: Any) -> None:
    assert unpack(data) == value


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"", "cut off"), (b"\xa5abc", "cut off"), (b"\xdd\xff\xff\xff\xff", "cut off"), (b"\xc1", "unknown type 0xc1")],
)
def test_damage_is_a_value_error(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        unpack(data)
    with pytest.raises(ValueError, match="nested more than 32 deep"):
        unpack(b"\x91" * 50)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_value_or_an_error(data: bytes) -> None:
    with suppress(ValueError, TypeError):  # a list is no key
        unpack(data)
