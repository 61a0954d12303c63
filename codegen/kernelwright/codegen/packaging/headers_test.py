from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.packaging.headers import respond_headers
from kernelwright.codegen.violations import SpecError


def test_headers_are_named_as_compilers_see_them(tmp_path: Path) -> None:
    (tmp_path / "include/kernelwright/cpu").mkdir(parents=True)
    (tmp_path / "include/kernelwright/cpu/a.hpp").write_text("// é\n")
    assert respond_headers({"stage": "headers"}, tmp_path) == {"files": {"include/kernelwright/cpu/a.hpp": "// é\n"}}


def test_nothing_to_give_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds no headers; install the kernelwright wheel"):
        respond_headers({"stage": "headers"}, tmp_path)
    with pytest.raises(SpecError, match="no other key"):
        respond_headers({"stage": "headers", "name": "x"}, tmp_path)
