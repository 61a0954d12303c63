from __future__ import annotations

from typing import Any

import pytest
from ratios import fastest, geometric_mean, ratios, spread, summary


def _result(m: int, ratio: float, **more: Any) -> dict[str, Any]:
    return {"set": "tuned", "what": "bf16", "m": m, "n": 2, "k": 3, "ratio": spread([ratio]), **more}


def test_the_fastest_call_of_the_reference_counts() -> None:
    times = {"torch.matmul": [9.0, 1.0, 9.0], "torch, other": [5.0, 5.0, 5.0], "kernelwright": [1.0, 1.0, 1.0]}
    assert fastest(times, ["torch.matmul", "torch, other"]) == "torch, other"


def test_ratios_are_taken_within_a_round() -> None:
    assert ratios([2.0, 8.0], [1.0, 2.0]) == [2.0, 4.0]
    with pytest.raises(ValueError, match="longer"):
        ratios([1.0], [1.0, 2.0])


def test_geometric_mean() -> None:
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_sets_and_operations_are_summed_apart() -> None:
    results = [
        _result(1, 0.5),
        _result(2, 2.0),
        _result(3, 4.0, set="held-out"),
        {"set": "tuned", "what": "bf16", "m": 4, "n": 2, "k": 3, "state": "not served"},
        {"set": "tuned", "what": "int8", "m": 5, "n": 2, "k": 3, "state": "unequal"},
    ]
    first, second, third = summary(results)
    assert (first["set"], first["what"], first["shapes"], first["slower"]) == ("tuned", "bf16", 2, 1)
    assert first["geometric_mean"] == pytest.approx(1.0)
    assert first["worst"] == {"m": 1, "n": 2, "k": 3, "ratio": {"median": 0.5, "min": 0.5, "max": 0.5}}
    assert first["not served"] == 1
    assert "unequal" not in first
    assert (second["set"], second["geometric_mean"]) == ("held-out", pytest.approx(4.0))
    assert (third["shapes"], third["geometric_mean"], third["worst"], third["unequal"]) == (0, None, None, 1)
