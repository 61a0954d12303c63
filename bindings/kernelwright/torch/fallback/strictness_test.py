from __future__ import annotations

import threading

import pytest

from kernelwright.dispatch import ProblemError
from kernelwright.torch.fallback import strictness
from kernelwright.torch.fallback.strictness import STRICTNESS, strict

FALLS_BACK = True


def test_regions_nest_and_hold_in_all_threads() -> None:
    seen: list[bool] = []
    with strict():
        with strict():
            thread = threading.Thread(target=lambda: seen.append(STRICTNESS.on))
            thread.start()
            thread.join()
        seen.append(STRICTNESS.on)
    assert [*seen, STRICTNESS.on] == [True, True, False]


@pytest.mark.parametrize(("word", "on"), [("on", True), ("1", True), ("True", True), ("off", False), ("", False)])
def test_the_environment_counts(word: str, on: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(strictness.ENVIRONMENT, word)
    made = strictness._Strictness()
    assert made.on == on
    made.add(1)
    made.add(-1)
    assert made.on == on


def test_unknown_words_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(strictness.ENVIRONMENT, "maybe")
    with pytest.raises(
        ProblemError, match="KERNELWRIGHT_STRICT is 'maybe'; allowed: on, off; set KERNELWRIGHT_STRICT=on"
    ):
        strictness.of_environment()
