from __future__ import annotations

import pytest

from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.measuring.timing import in_turns, timed_calls


def test_launches_take_turns_and_rotate_through_operands() -> None:
    order: list[str] = []
    launches = {
        name: [lambda name=name, number=number: order.append(f"{name}{number}") for number in range(2)] for name in "ab"
    }
    begun: list[str] = []
    spent = timed_calls(launches, Settings(warmup=2, repeat=3, rounds=2, warm_s=0), begun.append)
    assert {name: len(seconds) for name, seconds in spent.items()} == {"a": 2, "b": 2}
    assert all(second > 0 for seconds in spent.values() for second in seconds)
    assert order[:4] == ["a0", "a1", "b0", "b1"]  # warm-up
    assert order[4:] == ["a0", "a1", "a0", "b0", "b1", "b0", "b0", "b1", "b0", "a0", "a1", "a0"]
    assert begun == ["a", "b", "a", "b", "b", "a"]


def test_a_round_has_as_many_launches_as_its_time_allows() -> None:
    calls: list[int] = []
    timed_calls(
        {"a": [lambda: calls.append(0)]}, Settings(warmup=1, duration_s=0.001, rounds=1, warm_s=0), lambda name: None
    )
    assert len(calls) > 20


def counted(calls: list[int]) -> float:
    calls.append(0)
    return len(calls) - 1.0


def test_rounds_that_warm_clocks_do_not_count() -> None:
    calls: list[int] = []
    begun: list[str] = []
    spent = in_turns({"a": lambda: counted(calls)}, Settings(rounds=2, warm_s=0.01), begun.append)
    assert len(begun) == len(calls)
    assert len(calls) > 3 and spent == {"a": [len(calls) - 2, len(calls) - 1]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"rounds": 0}, "rounds is 0; allowed: at least 1"),
        ({"warmup": -1}, "warmup is -1; allowed: at least 0"),
        ({"warm_s": -1.0}, "warm-clocks is -1.0 s; allowed: at least 0"),
        ({"duration_s": 0.0}, "duration is 0.0 s; allowed: more than 0"),
    ],
)
def test_settings_that_measure_nothing_are_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Settings(**fields)  # type: ignore[arg-type]
