"""A type checker refuses misspelt words of calls before a program runs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.launcher import ROOT

ROOMS = ("arch", "bindings", "codegen", "jit")
PROGRAM = """from typing import Any

from kernelwright.dispatch import AttentionProblem, ConvProblem, Dispatcher, GemmProblem


def program(dispatcher: Dispatcher, a: Any, b: Any, problem: GemmProblem) -> None:
    {}
"""


def checked(line: str, folder: Path) -> str:
    """What mypy says of a program with this line."""
    # Named by its text: mypy takes what it has cached of a file of this name, size and second.
    program = f"program_{hashlib.sha256(line.encode()).hexdigest()[:16]}.py"
    text = PROGRAM.format(line)
    (folder / program).write_text(f"from kernelwright import torch\n{text}" if "torch." in line else text)
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "--cache-dir", str(ROOT / ".mypy_cache/types")]
    paths = ":".join(str(ROOT / room) for room in ROOMS)
    done = subprocess.run(
        [*command, "--config-file=", "--namespace-packages", "--explicit-package-bases", program],
        cwd=folder,
        env={"MYPYPATH": paths, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert done.returncode in (0, 1), done.stderr + done.stdout
    return done.stdout


@pytest.mark.parametrize(
    "line",
    [
        'dispatcher.gemm(a, b, activation="gelu", d_op="multiply")',
        'dispatcher.conv_forward(a, b, activation="relu")',
        'dispatcher.attention(a, b, b, mask="bottom_right", layout="bhsd")',
    ],
)
def test_words_of_the_lists_are_taken(line: str, tmp_path: Path) -> None:
    assert "Success" in checked(line, tmp_path)


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('dispatcher.gemm(a, b, activation="gelo")', "activation"),
        ('dispatcher.gemm(a, b, d_op="plus")', "d_op"),
        ('dispatcher.conv_forward(a, b, activation="gelo")', "activation"),
        ('dispatcher.attention(a, b, b, mask="causal")', "mask"),
        ('dispatcher.attention(a, b, b, layout="sbhd")', "layout"),
        ('dispatcher.attention_backward(a, b, b, a, a, a, mask="causal")', "mask"),
        ('GemmProblem(1, 2, 3, activation="gelo")', "activation"),
        ('GemmProblem(1, 2, 3, d_op="plus")', "d_op"),
        ('GemmProblem(1, 2, 3, layout="rcx")', "layout"),
        ('ConvProblem("forward", 1, 4, 4, 8, 3, activation="gelo")', "activation"),
        ('AttentionProblem("forward", 1, 1, 1, 8, 8, 64, mask="causal")', "mask"),
        ('torch.gemm(a, b, activation="gelo")', "activation"),
        ('torch.linear(a, b, activation="gelo")', "activation"),
        ('torch.conv2d(a, b, activation="gelo")', "activation"),
        ('torch.scaled_dot_product_attention(a, b, b, mask="causal")', "mask"),
    ],
)
def test_other_words_are_refused(line: str, word: str, tmp_path: Path) -> None:
    said = checked(line, tmp_path)
    assert f'Argument "{word}"' in said and "Literal[" in said, said
