from __future__ import annotations

from kernelwright.files.proposals import closest, identifier


def test_close_words_are_proposed_and_others_are_not() -> None:
    assert closest("gelo", ("relu", "gelu", "none")) == " (did you mean 'gelu'?)"
    assert closest("speed", ("relu", "gelu")) == closest(3, ("relu",)) == closest("relu", ()) == ""


def test_names_become_c_identifiers() -> None:
    assert [identifier(text) for text in ("my-lib 2", "2fast", "größe", "--")] == ["my_lib_2", "_2fast", "gr_e", ""]
    assert all(identifier(text).isidentifier() for text in ("my-lib 2", "2fast", "a.b"))
