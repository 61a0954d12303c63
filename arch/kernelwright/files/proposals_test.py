from __future__ import annotations

from kernelwright.files.proposals import closest


def test_close_words_are_proposed_and_others_are_not() -> None:
    assert closest("gelo", ("relu", "gelu", "none")) == " (did you mean 'gelu'?)"
    assert closest("speed", ("relu", "gelu")) == closest(3, ("relu",)) == closest("relu", ()) == ""
