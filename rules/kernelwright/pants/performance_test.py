from __future__ import annotations

import pytest

from kernelwright.pants import performance
from kernelwright.pants.compat import patches
from kernelwright.pants.performance import Tuning
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner


@pytest.mark.parametrize("on", [True, False])
def test_the_option_turns_all_of_it_on_or_off(monkeypatch: pytest.MonkeyPatch, on: bool) -> None:
    done: list[bool] = []
    monkeypatch.setattr(patches, "tune_process", lambda: done.append(True))
    runner = RuleRunner(rules=[*performance.rules(), QueryRule(Tuning, ())])
    runner.set_options([f"--kernelwright-performance-tune-daemon={on}"])
    assert runner.request(Tuning, []) == Tuning(on)
    assert done == ([True] if on else [])
