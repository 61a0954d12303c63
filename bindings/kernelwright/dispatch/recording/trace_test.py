from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import ConvProblem, GemmProblem, GroupedGemmProblem
from kernelwright.dispatch.recording.trace import Entry, add, entry, merge_traces, read_trace


def test_an_entry_holds_what_no_default_says() -> None:
    assert entry(GemmProblem(2, 3, 4), "a").problem == {"m": 2, "n": 3, "k": 4}
    fused = GemmProblem(2, 3, 4, "bf16", num_d=1, ld_multi_d=(0,), activation="relu", split_k=0, lda=8)
    one = entry(fused, "a")
    assert one.problem == {
        **{"m": 2, "n": 3, "k": 4, "dtype": "bf16", "lda": 8, "split_k": 0, "num_d": 1, "activation": "relu"},
        **{"ld_multi_d": [0]},
    }
    assert GemmProblem(**one.problem) == fused


@pytest.mark.parametrize(
    ("problem", "op"),
    [
        (ConvProblem("forward", 1, 8, 16, (7, 9), (3, 3), pad_left=1, groups=2), "convolution"),
        (ConvProblem("backward_weight", 1, 8, 16, (7,), (3,), stride=2, split_k=0), "convolution"),
        (GroupedGemmProblem([(1, 2, 3), (4, 5, 6)], "fp16"), "grouped gemm"),
    ],
)
def test_problems_of_every_operation_come_back_from_json(problem: object, op: str) -> None:
    made = entry(problem, "x")
    assert made.op == op
    again = type(problem)(**json.loads(json.dumps(made.problem)))
    assert again == problem


@settings(deadline=None)  # other builds share the machine
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 5), st.integers(0, 5)), max_size=9),
    st.integers(0, 9),
)
def test_counts_add_up_in_any_order_of_merging(found: list[tuple[str, int, int, int]], cut: int) -> None:
    import tempfile

    entries = [Entry("gemm", arch, {"m": m, "n": 1, "k": 1}, count, unserved) for arch, m, count, unserved in found]
    with tempfile.TemporaryDirectory() as folder:
        one, two, both = (Path(folder, name) for name in ("one", "two", "both"))
        add(one, entries[:cut])
        add(two, entries[cut:])
        merge_traces([two, one], both)
        merged = {one.key: (one.count, one.unserved) for one in read_trace(both)}
        add(two, entries[:cut])
        assert read_trace(two) == read_trace(both)
    assert sum(count for count, _ in merged.values()) == sum(one.count for one in entries)
    assert set(merged) == {one.key for one in entries}


def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"

    def write(number: int) -> None:
        for _ in range(20):
            add(path, [Entry("gemm", "a", {"m": number % 3, "n": 1, "k": 1}, 1)])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.count for one in read_trace(path)] == [40, 40, 40]
    assert [file.name for file in tmp_path.iterdir()] == ["trace.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 2, "problems": []}', '{"version": 1, "problems": [{"op": 1}]}']
)
def test_what_is_no_trace_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"trace.json is no trace of recorded problems"):
        read_trace(path)
