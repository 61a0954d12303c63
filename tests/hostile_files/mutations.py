"""Damaged and hostile forms of a JSON file: a seed draws the same ones on every machine."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

MARK = "EVIL"
TEXTS = (
    *("", "x", "\0", "ü", "\u202e", "../x", f'"{MARK}', f"*/ {MARK} /*", f"fp32\n#include <{MARK}>", f"\\\n{MARK}"),
    *(f"$({MARK})", "fp16", "gfx942", "9" * 5000, "\ud800"),
    f"fp32 &&//*/ extern int {MARK}(void); __attribute__((constructor)) void f(void){{}}",
)
NUMBERS = (
    *(0, -1, 1, 2, 3, 7, 2**31 - 1, 2**31, 2**32, 2**62, 2**63, 2**64, 10**400, -(2**63)),
    *(0.5, -0.5, 1e308, 1e-320, float("nan"), float("inf"), -float("inf")),
)
_LITERALS = (
    b"NaN",
    b"Infinity",
    b"-Infinity",
    b"1e999",
    b"9" * 5000,
    b"-0",
    b"1.5",
    b"null",
    b"true",
    b'"\\ud800"',
    b'"\\u0000"',
)
DEPTHS = (100, 2_000, 100_000)


def odd(dice: random.Random) -> Any:
    """A value that is unlikely to belong where it goes."""
    kind = dice.randrange(6)
    if kind == 0:
        return dice.choice((None, True, False))
    if kind == 1:
        return dice.choice(TEXTS)
    if kind in (2, 3):
        return dice.choice(NUMBERS)
    if kind == 4:
        return [copy.deepcopy(odd(dice)) for _ in range(dice.randrange(3))]
    return {dice.choice(TEXTS): odd(dice) for _ in range(dice.randrange(3))}


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each (object or list, key or index) inside a value."""
    slots, todo = [], [value]
    while todo:
        one = todo.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            slots.append((one, key))
            todo.append(one[key])
    return slots


def _place(dice: random.Random, value: Any) -> tuple[Any, Any]:
    """A place inside a value, shallow ones as often as those of long lists."""
    place, key = value, None
    while True:
        if not isinstance(place, dict | list) or not place:
            raise AssertionError("no place in an empty value")
        key = dice.choice(list(place) if isinstance(place, dict) else range(len(place)))
        below = place[key]
        if not isinstance(below, dict | list) or not below or dice.random() < 0.3:
            return place, key
        place = below


def reshape(dice: random.Random, good: Any) -> Any:
    """``good`` with one to three members replaced, removed, added, renamed, wrapped or made fractional."""
    bad = copy.deepcopy(good)
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        if not isinstance(bad, dict | list) or not bad:
            return odd(dice)
        place, key = _place(dice, bad)
        match dice.randrange(9):
            case 0 | 1 | 2:
                place[key] = odd(dice)
            case 3:
                del place[key]
            case 4 if isinstance(place, dict):
                place[dice.choice(TEXTS)] = place.pop(key)
            case 5 if isinstance(place, dict):
                place[dice.choice(TEXTS)] = odd(dice)
            case 6 if isinstance(place[key], int | float) and abs(place[key]) < 2**64:
                place[key] = dice.choice((place[key] + 0.5, -place[key], place[key] * 2.0**40, float(place[key])))
            case 7:
                place[key] = dice.choice(([place[key]], {"x": place[key]}, str(place[key]), [], {}))
            case _:
                other, at = _place(dice, bad)
                place[key] = copy.deepcopy(other[at])
    return bad


def damage(dice: random.Random, text: bytes) -> bytes:
    """A text's bytes cut, flipped, repeated, or with tokens that JSON of others may hold."""
    at = dice.randrange(max(1, len(text)))
    match dice.randrange(9):
        case 0:
            return text[:at]
        case 1:
            return text[:at] + bytes([dice.randrange(256)]) + text[at + 1 :]
        case 2:
            return (
                text[:at] + dice.choice((b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\0")) + text[at:]
            )
        case 3:
            return dice.choice((b"", b" ", b"null", b"[]", b"{}", b"0", b'"x"', b"\xef\xbb\xbf" + text, text + text))
        case 4:
            return text.decode().encode(dice.choice(("utf-16", "utf-32", "utf-16-le")))
        case 5:
            depth, (left, right) = dice.choice(DEPTHS), dice.choice(((b"[", b"]"), (b'{"x":', b"}")))
            return left * depth + dice.choice((b"1" + right * depth, b""))
        case 6 if b'"' in text:
            first = text.index(b'"', text.index(b"{") if b"{" in text else 0)
            colon = text.find(b":", first)
            return text[:first] + text[first:colon] + b": 1, " + text[first:] if colon > 0 else text[:at]
        case _:
            digits = [index for index in range(len(text)) if text[index : index + 1].isdigit()]
            if not digits:
                return text[:at]
            first = dice.choice(digits)
            last = first
            while first > 0 and text[first - 1 : first].isdigit():
                first -= 1
            while text[last : last + 1].isdigit():
                last += 1
            return text[:first] + dice.choice(_LITERALS) + text[last:]


def mutations(seed: int, count: int, good: Any, written: Any = None) -> Iterator[bytes]:
    """``count`` files made of ``good``; ``written`` turns a reshaped value into text (for digests), else JSON."""
    dice = random.Random(seed)
    plain = json.dumps(good).encode()
    for number in range(count):
        if number % 3 == 2:
            yield damage(dice, plain)
            continue
        bad = reshape(dice, good)
        if written is not None and dice.random() < 0.8:
            bad = written(bad)
        text = json.dumps(bad)
        if number % 12 == 1:  # beside its shape, its text
            yield damage(dice, text.encode())
        else:
            yield text.encode()
