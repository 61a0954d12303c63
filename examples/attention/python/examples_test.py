"""Each example runs, on small problems, and says what it should."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import example_programs

HERE = Path(__file__).parent
KERNELS = os.environ.get("KERNELWRIGHT_FMHA_KERNELS", str(HERE.parent / "kernels"))
GEMM_KERNELS = os.environ.get("KERNELWRIGHT_KERNELS", str(HERE.parents[1] / "gemm/kernels"))
# Example → what its output must have.
EXAMPLES = {
    "basic": "heads before rows: as NumPy",
    "eight_bits": "a factor for each page and head: as NumPy",
    "features": "dropout keeps the mean",
    "gradients": "dbias along a random direction",
    "paged_cache": "as one causal attention over each sequence",
    "ragged": "request 2: 40 of 40 keys count",
    "torch_features": "causal requests of different lengths: as torch, and its gradients",
    "torch_training": "as torch alone",
}


def run(name: str) -> int:
    """With the library of kernels: the exit status."""
    return example_programs.run(HERE / f"{name}.py", "--library", KERNELS)


def test_every_example_is_run() -> None:
    assert set(EXAMPLES) == example_programs.modules(HERE) - {"common"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example_programs.prepare(name, monkeypatch, tmp_path)
    assert run(name) == 0
    assert EXAMPLES[name] in capsys.readouterr().out


def test_a_network_whose_linear_layers_are_kernels_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example_programs.prepare("torch_training", monkeypatch, tmp_path)
    program = HERE / "torch_training.py"
    assert example_programs.run(program, "--library", KERNELS, "--linear", GEMM_KERNELS) == 0
    assert "415744 weights, 5 steps" in capsys.readouterr().out
