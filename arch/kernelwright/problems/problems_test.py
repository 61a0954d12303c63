from __future__ import annotations

import subprocess
import sys

import pytest

from kernelwright import problems


@pytest.mark.parametrize("name", problems.__all__)
def test_every_class_is_offered(name: str) -> None:
    assert getattr(problems, name).__name__ == name
    assert name in dir(problems)


def test_no_other_name_is_offered() -> None:
    with pytest.raises(AttributeError, match=r"module 'kernelwright.problems' has no attribute 'GemProblem'"):
        problems.GemProblem  # noqa: B018


def test_classes_are_imported_at_their_first_use() -> None:
    code = "import sys, kernelwright.problems as p; assert 'kernelwright.problems.gemm' not in sys.modules\n"
    code += "assert p.GemmProblem(1, 2, 3).m == 1 and 'kernelwright.problems.norm' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60)
