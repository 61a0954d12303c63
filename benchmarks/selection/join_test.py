from __future__ import annotations

from typing import Any

from selection.join import joined


def row(kernel: str, index: int, m: int, ms: float) -> dict[str, Any]:
    times = dict.fromkeys(("latency_ms", "latency_min_ms", "latency_max_ms"), str(ms))
    return {"kernel": kernel, "problem_idx": str(index), "m": str(m), "n": "8", "k": "8", "tflops": "6", **times}


def test_rows_of_the_new_run_are_put_on_the_scale_of_the_old_one() -> None:
    old = [row("torch: matmul", 4, 1, 2.0), row("a", 4, 1, 3.0), row("a_splitk", 4, 1, 9.0), row("a", 5, 2, 1.0)]
    new = [row("torch: matmul", 0, 1, 1.0), row("torch: other", 0, 1, 5.0), row("a", 0, 1, 1.5)]
    new += [row("a_splitk", 0, 1, 1.25), row("a_splitk", 1, 3, 1.0)]
    rows = list(joined(old, new, "splitk"))
    assert [(one["kernel"], one["problem_idx"], float(one["latency_ms"])) for one in rows] == [
        ("torch: matmul", "4", 2.0),
        ("a", "4", 3.0),
        ("a_splitk", "4", 2.5),
    ]
    assert float(rows[-1]["tflops"]) == 3 and rows[-1]["selected"] == ""
