from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.headers import answer_headers
from kernelwright.codegen.violations import SpecError


def test_headers_are_named_as_compilers_see_them(tmp_path: Path) -> None:
    (tmp_path / "include/kernelwright/cpu").mkdir(parents=True)
    (tmp_path / "include/kernelwright/cpu/a.hpp").write_text("// é\n")
    assert answer_headers({"stage": "headers"}, tmp_path) == {"files": {"include/kernelwright/cpu/a.hpp": "// é\n"}}


def test_nothing_to_give_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds no headers; install the kernelwright wheel"):
        answer_headers({"stage": "headers"}, tmp_path)
    with pytest.raises(SpecError, match="no other key"):
        answer_headers({"stage": "headers", "name": "x"}, tmp_path)
