from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kernelwright.dispatch import Device, Dispatcher, GemmProblem, KernelLibrary, SelectionError
from kernelwright.tile_engine.measuring.measure import Measurement, Pair
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.remembering import measured
from kernelwright.tile_engine.remembering.measured import MeasuredSelection
from kernelwright.tile_engine.remembering.memory import (
    describe_device,
    key_of,
    merge_memories,
    read_memory,
    remember,
)

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = os.environ.get("KERNELWRIGHT_KERNELS", str(ROOT / "examples/gemm/kernels"))
FAST = Settings(warmup=1, duration_s=0.001, rounds=1)
PROBLEM = GemmProblem(33, 17, 65, split_k=0)
RECORD = measurable("gemm").read({"m": 33, "n": 17, "k": 65, "dtype": "fp32"})


@pytest.fixture(scope="module")
def library() -> KernelLibrary:
    return KernelLibrary.load_for("cpu", LIBRARY)


def dispatcher(library: KernelLibrary, memory: Path, **options: object) -> Dispatcher:
    selection = MeasuredSelection(library, memory, settings=FAST, **options)  # type: ignore[arg-type]
    return Dispatcher(library, selection=selection)


def test_a_problem_is_measured_once_and_remembered(
    library: KernelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory.json"
    first = dispatcher(library, memory, top_k=2).select(PROBLEM)
    ((key, times),) = read_memory(memory).items()
    assert json.loads(key) == [describe_device(Device("cpu")), library.manifest.sha256, dict(RECORD)]
    best, _, value = min(times, key=times.__getitem__).partition(":")
    assert 1 <= len(times) <= 2 and first.kernel.identity == best and int(value) >= 1
    monkeypatch.setattr(measured, "Measurement", None)  # nothing is measured again
    again = dispatcher(library, memory).select(PROBLEM)
    assert again.kernel == first.kernel
    assert len(times) == 1 or "by measured times" in again.reason


def test_remembered_times_decide(library: KernelLibrary, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    pairs = Dispatcher(library).explain(PROBLEM).stages[0].pairs
    ranked = [f"{kernel.identity}:{value.value}" for kernel, value in pairs]
    key = key_of(describe_device(Device("cpu")), library.manifest.sha256, RECORD)
    remember(memory, {key: {ranked[-1]: 1.0, ranked[0]: 2.0}})
    assert dispatcher(library, memory).select(PROBLEM).kernel.identity == pairs[-1][0].identity


def test_values_are_measured_with_their_kernels(library: KernelLibrary, tmp_path: Path) -> None:
    long = GemmProblem(16, 16, 16384, split_k=0)
    pairs = Dispatcher(library).explain(long).stages[0].pairs
    sliced = [(kernel, value.value) for kernel, value in pairs if value.value > 1]
    (slow, _), (fast, slices) = pairs[0], sliced[-1]
    key = key_of(describe_device(Device("cpu")), library.manifest.sha256, measurable("gemm").record_of(long) or {})
    remember(tmp_path / "m", {key: {f"{slow.identity}:{pairs[0][1].value}": 2.0, f"{fast.identity}:{slices}": 1.0}})
    plan = dispatcher(library, tmp_path / "m").plan(long)
    assert (plan.stages[0].kernel.identity, plan.choices) == (fast.identity, f"split_k={slices}")
    dispatcher(library, tmp_path / "own", top_k=len(pairs)).select(long)
    ((_, times),) = read_memory(tmp_path / "own").items()
    assert set(times) == {f"{kernel.identity}:{value.value}" for kernel, value in pairs}


def test_other_libraries_and_devices_are_measured_anew(library: KernelLibrary, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    here = describe_device(Device("cpu"))
    ranked = [one.identity for one in Dispatcher(library).explain(PROBLEM) if one.score is not None]
    foreign = {key_of("another", library.manifest.sha256, RECORD): {ranked[-1]: 1.0}, key_of(here, "0", RECORD): {}}
    remember(memory, foreign)
    dispatcher(library, memory).select(PROBLEM)
    assert len(read_memory(memory)) == 3


def test_what_the_engine_cannot_pose_is_left_to_the_ranking(library: KernelLibrary, tmp_path: Path) -> None:
    problem = GemmProblem(33, 17, 65, lda=100, split_k=0)
    chosen = dispatcher(library, tmp_path / "m").select(problem)
    assert chosen.kernel == Dispatcher(library).select(problem).kernel and not read_memory(tmp_path / "m")


def test_a_wrong_kernel_is_not_chosen_for_want_of_a_right_one(
    library: KernelLibrary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(self: object, record: object, pairs: list[Pair], begin: object) -> list[dict[str, str]]:
        return [{"kernel": kernel, "status": "wrong", "reason": "off"} for kernel, _ in pairs]

    monkeypatch.setattr(Measurement, "run_pairs", wrong)
    with pytest.raises(SelectionError, match=r"none of the first 1 kernels computes .* right: \w+: wrong off"):
        dispatcher(library, tmp_path / "m", top_k=1).select(PROBLEM)
    assert not read_memory(tmp_path / "m")


def test_files_are_merged_and_foreign_ones_refused(tmp_path: Path) -> None:
    path = tmp_path / "m"
    remember(path, {"a": {"x": 1.0}})
    remember(path, {"b": {"y": 2.0}, "a": {"x": 3.0}})
    assert read_memory(path) == {"a": {"x": 3.0}, "b": {"y": 2.0}}
    merge_memories([path, path], tmp_path / "all")
    assert read_memory(tmp_path / "all") == read_memory(path)
    for text in ("notes", '{"version": 1, "times": {}}', "[]"):
        path.write_text(text)
        with pytest.raises(ValueError, match="is no memory of measured times"):
            read_memory(path)


def test_wrong_options_are_refused(library: KernelLibrary, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="top_k is 0"):
        MeasuredSelection(library, tmp_path / "m", top_k=0)
