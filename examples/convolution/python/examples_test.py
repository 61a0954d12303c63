"""Each example runs, on few and small problems, and says what it should."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import example_programs

HERE = Path(__file__).parent
KERNELS = os.environ.get("KERNELWRIGHT_CONV_KERNELS", str(HERE.parent / "kernels"))
# Example → arguments, and what its output must have.
EXAMPLES: dict[str, tuple[list[str], str]] = {
    "basic": ([], "with bias, residual and relu too"),
    "benchmark": (["--sizes", "8", "--channels", "8", "--repeats", "2"], "GFLOP/s"),
    "depthwise": ([], "planes with two channels per group have no kernel"),
    "directions": ([], "gradients add up in place"),
    "export_json": ([], '"explanations"'),
    "jit": ([], "equal to NumPy's result"),
    "torch_training": ([], "as torch alone"),
    "volumes": ([], "1D: later points change no earlier result"),
}


def run(name: str, *arguments: str) -> int:
    """With the library of kernels, unless the example compiles its own: the exit status."""
    library = [] if name == "jit" else ["--library", KERNELS]
    return example_programs.run(HERE / f"{name}.py", *library, *arguments)


def test_every_example_is_run() -> None:
    assert set(EXAMPLES) == example_programs.modules(HERE) - {"shared"}


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("name", EXAMPLES)
def test_example(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    example_programs.prepare(name, monkeypatch, tmp_path)
    arguments, expected = EXAMPLES[name]
    assert run(name, *arguments) == 0
    assert expected in capsys.readouterr().out


def test_exported_json_names_every_kernel(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run("export_json", "--output", str(tmp_path / "found.json")) == 0
    document = json.loads((tmp_path / "found.json").read_text())
    registered = {kernel["identity"] for kernel in document["registry"]["kernels"]}
    for explanation in document["explanations"].values():
        assert {kernel["identity"] for kernel in explanation["stages"][0]["kernels"]} <= registered
    assert run("benchmark", "--sizes", "8", "--channels", "8", "--repeats", "1", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 3
