"""Several actions made by one command: results, failures, and what other processes do meanwhile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.batching.batch import Batch, Joined, UncuttableError
from kernelwright.codegen.building.execute import BuildError, LocalExecutor, Watcher
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.testing.null_backend import copy_action

NAMES = ("one", "two", "three")
FILES = [RenderedFile(f"{name}.in", f"{name}\n") for name in NAMES]
LINK = copy_action([f"{name}.out" for name in NAMES], "all")
COPY = "import sys; open(sys.argv[-1], 'w').write(''.join(open(path).read().upper() for path in sys.argv[1:-1]))"
BROKEN = (
    "import sys; sys.exit('two is broken' if any('TWO' in open(path).read().upper() for path in sys.argv[1:-1]) else 0)"
)
Cut = Callable[[bytes], Mapping[str, bytes]]


def compile_of(name: str, code: str = COPY) -> Action:
    argv = (sys.executable, "-c", code, f"{name}.in", f"{name}.out")
    return Action(name, f"Compile {name}", argv, (f"{name}.in",), (f"{name}.out",))


def by_line(members: Sequence[Action]) -> Cut:
    def cut(data: bytes) -> dict[str, bytes]:
        lines = data.splitlines(keepends=True)
        return {member.outputs[0]: line for member, line in zip(members, lines, strict=True)}

    return cut


def uncuttable(members: Sequence[Action]) -> Cut:
    def cut(data: bytes) -> dict[str, bytes]:
        raise UncuttableError("they share a table")

    return cut


def batch_of(members: Sequence[Action], code: str = COPY, cut: Callable[[Sequence[Action]], Cut] = by_line) -> Batch:
    def join(some: Sequence[Action]) -> Joined:
        file = RenderedFile("batch.txt", "".join(member.id for member in some))
        inputs = [path for member in some for path in member.inputs]
        argv = (sys.executable, "-c", code, *inputs, "batch.out")
        return Joined(file, Action("batch", "Batch", argv, (file.path, *inputs), ("batch.out",)), cut(some))

    return Batch(tuple(members), join, 512)


class Heard(Watcher):
    """What a run tells."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def started(self, action: Action) -> None:
        self.lines.append(f"+{action.id}")

    def ended(self, action: Action, cached: bool) -> None:
        self.lines.append(f"{'=' if cached else '-'}{action.id}")

    def parted(self, actions: Sequence[Action], why: str) -> None:
        self.lines.append(f"{len(actions)} apart: {why}")


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def executor(tmp_path: Path, heard: Heard) -> LocalExecutor:
    return LocalExecutor({}, tmp_path / "cache", watcher=heard, memory_mb=4096)


COMPILES = [compile_of(name) for name in NAMES]


def test_each_result_is_stored_as_that_of_its_own_action(executor: LocalExecutor, heard: Heard) -> None:
    made = executor.run(FILES, [*COMPILES, LINK], batches=[batch_of(COMPILES)])
    assert made["two.out"].read_text() == "TWO\n" and made["all"].read_text() == "ONE\nTWO\nTHREE\n"
    assert sorted(heard.lines[:6]) == ["+one", "+three", "+two", "-one", "-three", "-two"]
    single = LocalExecutor({}, executor.cache, watcher=Heard())
    assert single.missing(FILES, [*COMPILES, LINK]) == []
    assert single.run(FILES, [*COMPILES, LINK]) == made
    total = sum(executor.costs[name].cpu_s for name in NAMES)
    assert total > 0 and executor.costs["one"].cpu_s == executor.costs["two"].cpu_s == pytest.approx(total / 3)


def test_only_members_without_a_result_are_joined(executor: LocalExecutor, heard: Heard) -> None:
    executor.run(FILES, COMPILES[1:2])
    heard.lines.clear()
    made = executor.run(FILES, COMPILES, batches=[batch_of(COMPILES)])
    assert [made[f"{name}.out"].read_text() for name in NAMES] == ["ONE\n", "TWO\n", "THREE\n"]
    assert sorted(heard.lines) == ["+one", "+three", "-one", "-three", "=two"]


def test_a_member_that_fails_is_named_alone_and_the_others_are_made(executor: LocalExecutor, heard: Heard) -> None:
    actions = [compile_of("one"), compile_of("two", BROKEN), compile_of("three")]
    batch = batch_of(actions, BROKEN)
    with pytest.raises(BuildError) as caught:
        executor.run(FILES, actions, keep_going=True, batches=[batch])
    (error,) = caught.value.errors
    assert error.action is actions[1] and "two is broken" in error.output and "Batch" not in str(caught.value)
    assert heard.lines[3] == "3 apart: Batch: failed with exit code 1"
    assert {"-one", "-three"} < set(heard.lines) and executor.missing(FILES, actions) == [actions[1]]
    heard.lines.clear()
    with pytest.raises(BuildError, match="failed with exit code 1 before"):
        executor.run(FILES, actions, keep_going=True, batches=[batch])
    assert sorted(heard.lines) == ["=one", "=three"]  # what failed before is tried neither in a batch nor alone


def test_what_cannot_be_cut_is_made_one_by_one(executor: LocalExecutor, heard: Heard) -> None:
    made = executor.run(FILES, COMPILES, batches=[batch_of(COMPILES, cut=uncuttable)])
    assert [made[f"{name}.out"].read_text() for name in NAMES] == ["ONE\n", "TWO\n", "THREE\n"]
    assert heard.lines[3] == "3 apart: they share a table" and len(heard.lines) == 10


def test_a_batch_that_takes_too_long_is_made_one_by_one(executor: LocalExecutor, heard: Heard) -> None:
    executor.timeout_s = 5
    executor.run(FILES, COMPILES, batches=[batch_of(COMPILES, "import time; time.sleep(60)")])
    assert "took more than its limit of 5 seconds" in heard.lines[3] and "-three" in heard.lines


def test_what_another_process_makes_is_waited_for(executor: LocalExecutor, heard: Heard) -> None:
    executor._prepare(FILES, COMPILES)
    ready = {file.path: executor._store_text(file.text) for file in FILES}
    entry = executor._entry(COMPILES[0], ready)
    executor.lock_timeout_s = 0.2
    with entry_lock(executor.cache / "locks" / entry.name, 1) as ours:
        assert ours
        made = executor.run(FILES, COMPILES, batches=[batch_of(COMPILES)])
    assert made["one.out"].read_text() == "ONE\n"
    assert heard.lines[:2] == ["+two", "+three"] and heard.lines[-2:] == ["+one", "-one"]


def test_a_batch_that_does_not_fit_into_memory_is_not_tried(executor: LocalExecutor, heard: Heard) -> None:
    executor.memory_mb = 400
    executor.run(FILES, COMPILES, batches=[batch_of(COMPILES)])
    assert heard.lines == ["+one", "-one", "+two", "-two", "+three", "-three"]
