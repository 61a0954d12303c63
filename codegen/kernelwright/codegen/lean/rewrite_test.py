from __future__ import annotations

import hashlib

import pytest

from kernelwright.codegen.lean.rewrite import Edit, Header, Swap, Without, rewritten
from kernelwright.codegen.violations import SpecError

TEXT = "struct a {\n  int x;\n};\nstruct b {\n  int x;\n};\n"


def header(*edits: Edit | Swap | Without, text: str = TEXT) -> Header:
    return Header("x/a.hpp", hashlib.sha256(text.encode()).hexdigest(), edits)


def made(*edits: Edit | Swap | Without) -> str:
    return rewritten([header(*edits)], lambda path: TEXT.encode())["x/a.hpp"]


def test_what_stands_between_two_anchors_gives_way() -> None:
    assert made(Edit("struct a {\n", "};", "  ours;\n")) == "struct a {\n  ours;\n};\nstruct b {\n  int x;\n};\n"


def test_edits_are_made_one_after_the_other() -> None:
    assert made(Edit("struct a {", "struct b", "x "), Edit("{x ", "{", "y ")) == "struct a {x y {\n  int x;\n};\n"


def test_an_empty_anchor_is_the_end() -> None:
    assert made(Edit("struct b {\n", "", "};\n")) == "struct a {\n  int x;\n};\nstruct b {\n};\n"


def test_what_stands_between_may_stay() -> None:
    assert made(Edit("struct b {\n", "\n};", "<", tail=">")) == "struct a {\n  int x;\n};\nstruct b {\n<  int x;>\n};\n"


def test_an_anchor_may_be_there_several_times() -> None:
    assert made(Edit("{\n", "}", "", times=2)) == "struct a {\n};\nstruct b {\n};\n"


def test_words_are_swapped_as_often_as_expected() -> None:
    assert made(Swap("int x", "float y", times=2)) == TEXT.replace("int x", "float y")


def test_lines_are_left_out() -> None:
    assert made(Without(r"\s+int [xy];", times=2)) == "struct a {\n};\nstruct b {\n};\n"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (Without("int", times=2), "holds 'int' in 0 lines; its rewriting expects 2"),
        (Swap("int x", "float y"), "holds 'int x' 2 times; its rewriting expects 1"),
        (Edit("struct c", "}", ""), "holds 'struct c' 0 times; its rewriting expects 1"),
        (Edit("int", ";", ""), "holds 'int' 2 times; its rewriting expects 1"),
        (Edit("struct b", "struct", ""), "lacks 'struct' after 'struct b'"),
    ],
)
def test_an_anchor_that_is_not_where_it_should_be_is_an_error(edit: Edit | Swap | Without, words: str) -> None:
    with pytest.raises(SpecError, match=f"^x/a.hpp {words}"):
        made(edit)


def test_a_header_of_another_release_is_refused() -> None:
    with pytest.raises(SpecError, match=r"x/a.hpp has the sha256 .* install the pinned release"):
        rewritten([header()], lambda path: TEXT.encode() + b"\n")
