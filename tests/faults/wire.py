"""Just enough of protobuf's wire format to speak to a remote cache without generated code."""

from __future__ import annotations

from collections.abc import Iterable

Field = int | bytes
Message = dict[int, list[Field]]


def decode(data: bytes) -> Message:
    """The fields of a message by number, in order; ValueError if it is none."""
    fields: Message = {}
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        value: Field
        if kind == 0:
            value, position = _varint(data, position)
        elif kind == 2:
            size, position = _varint(data, position)
            value, position = data[position : position + size], position + size
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
            value, position = data[position : position + size], position + size
        else:
            raise ValueError(f"wire type {kind}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def encode(fields: Iterable[tuple[int, Field | str]]) -> bytes:
    """A message of these fields."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += _as_varint(number << 3) + _as_varint(value)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += _as_varint(number << 3 | 2) + _as_varint(len(data)) + data
    return bytes(out)


def text(message: Message, number: int) -> str:
    """A text field, empty if it is not there."""
    return blob(message, number).decode()


def blob(message: Message, number: int) -> bytes:
    """A bytes or message field, empty if it is not there."""
    values = message.get(number, [b""])
    return values[-1] if isinstance(values[-1], bytes) else b""


def number(message: Message, field: int) -> int:
    """A whole number, 0 if it is not there."""
    values = message.get(field, [0])
    return values[-1] if isinstance(values[-1], int) else 0


def digest(fingerprint: str, size: int) -> bytes:
    """The REAPI's Digest."""
    return encode([(1, fingerprint), (2, size)])


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data):
            raise ValueError("message ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def _as_varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
