from __future__ import annotations

from typing import Any, Tuple

import pytest

from kernelwright.pants.damaged_store import DamagedStore
from kernelwright.pants.engine import exit_codes
from kernelwright.pants.util_rules.actions import ActionFailed
from kernelwright.pants.util_rules.codegen import CodegenError
from kernelwright.pants.util_rules.library import LibraryError
from kernelwright.pants.util_rules.wheel import WheelError
from pants.bin.local_pants_runner import LocalPantsRunner
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.target import InvalidFieldException


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("of Pants"), 1),
        (ActionFailed("a compiler"), 1),
        (CodegenError("a filter", 2), 2),
        (CodegenError("a defect", 4), 4),
        (CodegenError("killed", -9), 1),
        (LibraryError("no kernel"), 2),
        (WheelError("no file"), 2),
        (InvalidFieldException("a field"), 2),
        (DamagedStore("a file"), 3),
    ],
)
def test_each_error_has_its_code(error: Exception, code: int) -> None:
    assert exit_codes.exit_code([error]) == code
    assert exit_codes.exit_code([ActionFailed("another"), error]) == code
    assert exit_codes.exit_code([]) == 1


def test_goals_end_with_the_code_of_their_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, goals: Tuple[str, ...]) -> int:
        failed: Any = ExecutionError
        raise failed("1 Exception encountered", wrapped_exceptions=(CodegenError("a filter", 2),))

    monkeypatch.setattr(LocalPantsRunner, "_perform_run", fails)
    exit_codes.install()
    installed: Any = LocalPantsRunner._perform_run
    exit_codes.install()
    runner: Any = LocalPantsRunner
    assert runner._perform_run is installed
    assert installed(None, ("kernels",)) == 2


def test_other_results_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LocalPantsRunner, "_perform_run", lambda self, goals: 7)
    exit_codes.install()
    runner: Any = LocalPantsRunner
    assert runner._perform_run(None, ("test",)) == 7
