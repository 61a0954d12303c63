from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.packaging.headers import respond_headers
from kernelwright.codegen.violations import SpecError


def test_files_are_named_as_compilers_see_them(tmp_path: Path) -> None:
    texts = {"include/kernelwright/cpu/a.hpp": "// é\n", "launchers/cpu/a/launch.cpp": "int a;\n"}
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    assert respond_headers({"stage": "headers"}, tmp_path) == {"files": texts}


def test_nothing_to_give_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds no headers; install the kernelwright wheel"):
        respond_headers({"stage": "headers"}, tmp_path)
    with pytest.raises(SpecError, match="no other key"):
        respond_headers({"stage": "headers", "name": "x"}, tmp_path)
