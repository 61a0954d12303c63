from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

import pytest

from kernelwright.codegen.formulas.made import find, formulas, headers
from kernelwright.codegen.formulas.translate import constants, translate
from kernelwright.codegen.formulas.types import FormulaError
from kernelwright.codegen.interface.cli import main

NATIVE = Path(__file__).resolve().parents[4] / "dispatcher_cpp"


def test_the_checked_in_headers_are_current() -> None:
    command = "PYTHONPATH=arch:codegen python -m kernelwright.codegen formulas dispatcher_cpp/include"
    for name, text in headers().items():
        folder = NATIVE / "include" if name.startswith("kernelwright/") else NATIVE
        assert (folder / name).read_text() == text, f"write them anew: {command}"


def test_no_header_is_left_of_a_formula_that_is_gone() -> None:
    made = [path for path in NATIVE.rglob("*.h") if " by `kernelwright formulas`" in path.read_text()]
    assert _names(made, NATIVE) == set(headers())


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["formulas", str(tmp_path / "include")]) == 0
    assert _names(tmp_path.rglob("*.h"), tmp_path) == set(headers())
    assert capsys.readouterr().out.count("\n") == len(headers())


def _names(paths: Iterable[Path], root: Path) -> set[str]:
    return {str(path.relative_to(root)).removeprefix("include/") for path in paths}


def test_formulas_are_found_by_their_modules() -> None:
    assert {"formulas.machine", "operations.gemm.formulas.hopper"} <= set(formulas())
    with pytest.raises(FormulaError, match="is no formula; allowed"):
        find("operations.gemm.spec")


@pytest.mark.parametrize("module", list(formulas()))
def test_constants_are_those_of_the_module(module: str) -> None:
    loaded = importlib.import_module(f"kernelwright.codegen.{module}")
    for name, value in constants(find(module).text).items():
        assert getattr(loaded, name) == value


def test_constants_of_a_fit_can_be_changed() -> None:
    text = translate(find("operations.gemm.formulas.hopper"), find, variable=True)
    assert "static double KW_GEMM_HOPPER_START_CLOCKS = 553.9;" in text
    assert "#define KW_GEMM_HOPPER_FILL_CLOCKS (1.0 / KW_GEMM_HOPPER_FILL_BYTES_PER_CLOCK)" in text
    assert 'if (strcmp(name, "START_CLOCKS") == 0) return &KW_GEMM_HOPPER_START_CLOCKS;' in text
