from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import ConvProblem, GemmProblem, GroupedGemmProblem, KernelwrightError
from kernelwright.dispatch.core import operation
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


def test_a_trace_calls_an_operation_as_the_operation_says(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = GemmProblem(1, 2, 3)
    known = operation.of_problem(problem)
    for recorded, word in (("", "sum, of rows"), ("sum", "sum")):
        renamed = dataclasses.replace(known, name="sum, of rows", recorded=recorded)
        monkeypatch.setattr(operation, "of_problem", lambda offered, renamed=renamed: renamed)
        assert entry(problem, "x86_64_v3").op == word


@settings(deadline=None)  # other builds share the machine
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 3), st.integers(0, 5), st.integers(0, 5)), max_size=9),
    st.integers(0, 9),
)
def test_counts_add_up_in_any_order_of_merging(drawn: list[tuple[str, int, int, int]], cut: int) -> None:
    import tempfile

    entries = [Entry("gemm", arch, {"m": m, "n": 1, "k": 1}, count, unserved) for arch, m, count, unserved in drawn]
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


_ENTRY = {"op": "gemm", "arch": "x", "problem": {"m": 1}, "count": 1, "unserved": 0}
_CHANGES: list[dict[str, object]] = [
    {"count": "1"},
    {"count": 0.5},
    {"count": -1},
    {"unserved": True},
    {"op": 1},
    {"problem": []},
    {"x": 1},
]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"version": 1}',
        b'{"version": 2, "problems": []}',
        b'{"version": 1, "problems": {}}',
        b'{"version": 1, "version": 1, "problems": []}',
        b'{"version": 1, "problems": [NaN]}',
        b'{"x":' * 100_000,
        *(json.dumps({"version": 1, "problems": [{**_ENTRY, **changed}, _ENTRY]}).encode() for changed in _CHANGES),
    ],
)
def test_what_is_no_trace_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(content)
    for read in (read_trace, lambda path: merge_traces([path], tmp_path / "merged.json")):
        with pytest.raises(
            KernelwrightError, match=r"trace\.json is no trace of recorded problems: .*; record a program again"
        ):
            read(file)
