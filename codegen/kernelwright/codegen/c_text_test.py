from __future__ import annotations

import json
from enum import StrEnum

import pytest

from kernelwright.codegen import c_text
from kernelwright.codegen.c_text import CText, UnprintableError
from kernelwright.codegen.testing.hostile import HOSTILE

FILTERS = sorted(set(c_text.FILTERS) - {"length", "join"})


class Word(StrEnum):
    PLAIN = "plain"
    ODD = 'odd"'


@pytest.mark.parametrize("text", HOSTILE)
def test_no_filter_lets_hostile_texts_pass(text: str) -> None:
    for name in FILTERS:
        if name == "string" and text.isascii() and text.isprintable() and "??" not in text:
            assert json.loads(c_text.string(text)) == text  # quoted: it stays inside the literal
            continue
        with pytest.raises(UnprintableError, match="cannot stand in generated source; allowed: "):
            c_text.FILTERS[name](text)
    with pytest.raises(UnprintableError):
        c_text.printed(text)
    with pytest.raises(UnprintableError):
        c_text.join(["a", text])


@pytest.mark.parametrize("value", [None, b"x", [], {}, object(), float("nan"), float("inf"), 2**64, -(10**400), 1j])
def test_no_filter_lets_other_types_and_unbounded_numbers_pass(value: object) -> None:
    for name in FILTERS:
        with pytest.raises(UnprintableError):
            c_text.FILTERS[name](value)
    with pytest.raises(UnprintableError):
        c_text.printed(value)


def test_words_and_numbers_are_printed_as_they_are() -> None:
    assert [c_text.printed(value) for value in ("gemm_1", "", 3, -2.5, Word.PLAIN)] == ["gemm_1", "", 3, -2.5, "plain"]
    for value in (True, "a b", "a" * 256, Word.ODD):
        with pytest.raises(UnprintableError):
            c_text.printed(value)
    assert c_text.printed(CText("a b;")) == "a b;"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("upper", Word.PLAIN, "PLAIN"),
        ("lower", True, "true"),
        ("int", False, "0"),
        ("string", 'a "b" \\', '"a \\"b\\" \\\\"'),
        ("path", "gfx942/gemm_1.co", "gfx942/gemm_1.co"),
        (
            "type",
            "attention_part<widened_fma<fp32>, /*tile*/ 64, 64>",
            "attention_part<widened_fma<fp32>, /*tile*/ 64, 64>",
        ),
        ("constant", "KW_SERVES(KW_A) | KW_SERVES(KW_B)", "KW_SERVES(KW_A) | KW_SERVES(KW_B)"),
        ("constant", True, "true"),
        (
            "expression",
            "(p->m > 0 ? fmax(p->extent[0], 1.5) : 1) * -2",
            "(p->m > 0 ? fmax(p->extent[0], 1.5) : 1) * -2",
        ),
        ("exact", 0.1, "0x1.999999999999ap-4"),
    ],
)
def test_what_filters_are_for(name: str, value: object, text: str) -> None:
    assert str(c_text.FILTERS[name](value)) == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("type", "a<b"),
        ("type", "a(b)"),
        ("type", "a // b"),
        ("constant", "system(0)"),
        ("constant", "a = b"),
        ("expression", "system(p->m)"),
        ("expression", "p->m = 1"),
        ("expression", "p->m += 1"),
        ("expression", "p->m++"),
        ("expression", "1 // x"),
        ("expression", "1 /* x"),
        ("path", "../a"),
        ("path", "/a"),
        ("path", "a/../b"),
        ("path", "-a"),
    ],
)
def test_what_they_are_not_for(name: str, text: str) -> None:
    with pytest.raises(UnprintableError):
        c_text.FILTERS[name](text)
