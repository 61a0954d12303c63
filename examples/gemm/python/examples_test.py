"""Each example runs, on few and small problems, and says what it should."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import example_programs

HERE = Path(__file__).parent
KERNELS = os.environ.get("KERNELWRIGHT_KERNELS", str(HERE.parent / "kernels"))
# Example → arguments, and what its output must have.
EXAMPLES: dict[str, tuple[list[str], str]] = {
    "basic": ([], "with alpha and beta too"),
    "benchmark": (["--sizes", "32,64", "--repeats", "2"], "GFLOP/s, NumPy"),
    "export_json": ([], '"explanation"'),
    "grouped": ([], "a batch of 8, exact"),
    "heuristics": ([], "widest_block: gemm_"),
    "jit": ([], ": exact"),
    "many_sizes": ([], "14 problems, all exact"),
    "multi_d": ([], "equal to NumPy's results"),
    "preshuffle": ([], "all products exact"),
    "stress": (["--threads", "16", "--rounds", "5"], "80 of 80 products, 0 wrong"),
    "torch_tensors": ([], "close to torch's result"),
    "torch_training": ([], "as torch alone"),
    "validation": (["--cases", "2"], "kernels are right, 0 wrong"),
}


def run(name: str, *arguments: str) -> int:
    """With the library of kernels, unless the example compiles its own: the exit status."""
    library = [] if name == "jit" else ["--library", KERNELS]
    return example_programs.run(HERE / f"{name}.py", *library, *arguments)


def test_every_example_is_run() -> None:
    assert set(EXAMPLES) == example_programs.modules(HERE) - {"command_line"}


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
    assert (
        registered == {kernel["identity"] for kernel in document["explanation"]["stages"][0]["kernels"]} and registered
    )
    assert run("benchmark", "--sizes", "32", "--repeats", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)[0]["size"] == 32
