"""Attention is measured once, splits with their kernels, and the dispatcher keeps what was fastest."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kernelwright.dispatch import AttentionProblem, Dispatcher, KernelLibrary, SelectionError
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.remembering import select
from kernelwright.tile_engine.remembering.memory import read_memory, remember

ARCH = "x86_64_v3"
DECODE = AttentionProblem("forward", 1, 4, 1, 1, 512, 64, dtype="fp32")
BACKWARD = AttentionProblem("backward", 1, 2, 1, 16, 24, 32, dtype="fp32", mask="bottom_right")


@pytest.fixture
def dispatcher(libraries: dict[str, KernelLibrary], monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    monkeypatch.setattr(select, "SETTINGS", Settings(warmup=1, duration_s=0.001, rounds=1))
    return Dispatcher(libraries[ARCH])


def test_splits_are_measured_with_their_kernels(dispatcher: Dispatcher, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    pairs = dispatcher.explain(DECODE).stages[0].pairs
    assert len({value.value for _, value in pairs}) > 1
    chosen = dispatcher.select(DECODE, measure=True, top_k=len(pairs), memory=memory)
    ((key, times),) = read_memory(memory).items()
    assert set(times) == {f"{kernel.identity}:{value.value}" for kernel, value in pairs}
    assert json.loads(key)[2]["seqlen_k"] == 512
    best, _, splits = min(times, key=times.__getitem__).partition(":")
    plan = dispatcher.plan(DECODE)
    assert plan.stages[0].kernel.identity == chosen.kernel.identity == best
    assert plan.choices == f"num_splits={splits}"


def test_calls_have_the_plan_that_was_fastest(dispatcher: Dispatcher, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    draw = np.random.default_rng(0)
    q, k, v = (draw.standard_normal(shape, np.float32) for shape in ((1, 1, 4, 64), (1, 512, 1, 64), (1, 512, 1, 64)))
    before = dispatcher.attention(q, k, v)
    pairs = dispatcher.explain(DECODE).stages[0].pairs
    kernel, value = pairs[-1]  # what nobody would take by predicted times
    dispatcher.select(DECODE, measure=True, memory=memory)
    ((key, _),) = read_memory(memory).items()
    remember(memory, {key: {f"{kernel.identity}:{value.value}": 1.0}})
    other = Dispatcher(dispatcher.libraries)
    other.select(DECODE, measure=True, memory=memory)
    assert other.plan(DECODE).stages[0].kernel.identity == kernel.identity
    np.testing.assert_allclose(other.attention(q, k, v), before, rtol=1e-4, atol=1e-5)
    other.set_priority(kernel.identity, 0)  # forgets what was kept
    assert other.plan(DECODE).choices == Dispatcher(dispatcher.libraries).plan(DECODE).choices


def test_gradients_are_measured_with_all_their_stages(dispatcher: Dispatcher, tmp_path: Path) -> None:
    memory = tmp_path / "memory.json"
    dispatcher.select(BACKWARD, measure=True, memory=memory)
    ((_, times),) = read_memory(memory).items()
    stages = dispatcher.plan(BACKWARD).stages
    assert len(stages) == 3 and any(label.startswith(stages[1].kernel.identity) for label in times)


def test_what_cannot_be_measured_says_so(dispatcher: Dispatcher, tmp_path: Path) -> None:
    dropped = AttentionProblem("forward", 1, 4, 1, 1, 512, 64, dtype="fp32", dropout_p=0.5)
    with pytest.raises(SelectionError, match=r"cannot be measured on cpu: the tile engine poses .*leave measure out"):
        dispatcher.select(dropped, measure=True, memory=tmp_path / "m")
    with pytest.raises(SelectionError, match="top_k is 0; allowed: at least 1"):
        dispatcher.select(DECODE, measure=True, top_k=0, memory=tmp_path / "m")
