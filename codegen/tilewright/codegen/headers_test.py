from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.codegen.headers import answer_headers
from tilewright.codegen.violations import SpecError


def test_headers_are_named_as_compilers_see_them(tmp_path: Path) -> None:
    (tmp_path / "include/tilewright/cpu").mkdir(parents=True)
    (tmp_path / "include/tilewright/cpu/a.hpp").write_text("// é\n")
    assert answer_headers({"stage": "headers"}, tmp_path) == {"files": {"include/tilewright/cpu/a.hpp": "// é\n"}}


def test_nothing_to_give_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="holds no headers; install the tilewright wheel"):
        answer_headers({"stage": "headers"}, tmp_path)
    with pytest.raises(SpecError, match="no other key"):
        answer_headers({"stage": "headers", "name": "x"}, tmp_path)
