from __future__ import annotations

import click
import pytest

from kernelwright.codegen.interface.cli_parts import Choice, proposing


def test_a_misspelt_word_gets_a_proposal() -> None:
    assert Choice(["fp16", "bf16"]).convert("bf16", None, None) == "bf16"
    with pytest.raises(click.BadParameter, match=r"'bf61' is not one of 'fp16', 'bf16' \(did you mean 'bf16'\?\)\.$"):
        Choice(["fp16", "bf16"]).convert("bf61", None, None)
    with pytest.raises(click.BadParameter, match=r"'wide' is not one of 'fp16', 'bf16'\.$"):
        Choice(["fp16", "bf16"]).convert("wide", None, None)
    assert proposing("No such command 'gem'.", "gem", ["gemm"]) == "No such command 'gem' (did you mean 'gemm'?)."
