"""Processes that fill one cache and are killed: a small crowd here, a large one with real kernels in jit/."""

from __future__ import annotations

import sys
from pathlib import Path

from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.testing.crowd import crowd

COUNT = 24
ENVIRONMENT = (("PATH", "/usr/bin:/bin"),)


def shell(script: str, inputs: tuple[str, ...], output: str) -> Action:
    return Action(output, f"Make {output}", ("/bin/sh", "-c", script), inputs, (output,), env=ENVIRONMENT, memory_mb=10)


def plan() -> tuple[list[RenderedFile], list[Action]]:
    """Steps that write in two pieces with a pause between, and one that needs all of them."""
    files = [RenderedFile(f"in/{n}", f"{n} ") for n in range(COUNT)]
    actions = [
        shell(f"cat in/{n} >out/{n}; sleep 0.05; cat in/{n} >>out/{n}", (f"in/{n}",), f"out/{n}") for n in range(COUNT)
    ]
    parts = tuple(f"out/{n}" for n in range(COUNT))
    return files, [*actions, shell(f"cat {' '.join(parts)} >all", parts, "all")]


def expected() -> str:
    return "".join(f"{n} {n} " for n in range(COUNT))


def fill(cache: Path) -> list[str]:
    """What had to be run; AssertionError if anything in the cache is not what it should be."""
    ran: list[str] = []
    files, actions = plan()
    paths = LocalExecutor({}, cache, jobs=3, memory_mb=1000, progress=ran.append, lock_timeout_s=60).run(files, actions)
    assert paths["all"].read_text() == expected()
    assert all(paths[f"out/{n}"].read_text() == f"{n} {n} " for n in range(COUNT))
    return ran


def test_a_crowd_fills_one_cache(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    command = [sys.executable, "-P", __file__, str(cache)]
    killed = crowd(command, tmp_path / "logs", processes=4, kills=6, pause_s=0.3, seed=1, timeout_s=120)
    assert fill(cache) == [], "something was left out"
    lines = [line for log in (tmp_path / "logs").iterdir() for line in log.read_text().splitlines()]
    assert killed and len(lines) <= COUNT + 1 + killed * 3, "processes do not wait for each other"


def test_a_crowd_that_is_left_alone_makes_everything_once(tmp_path: Path) -> None:
    command = [sys.executable, "-P", __file__, str(tmp_path / "cache")]
    assert crowd(command, tmp_path / "logs", processes=4, kills=0, pause_s=1, seed=1, timeout_s=120) == 0
    lines = [line for log in (tmp_path / "logs").iterdir() for line in log.read_text().splitlines()]
    assert sorted(lines) == sorted(action.description for action in plan()[1])


if __name__ == "__main__":
    executor = LocalExecutor({}, Path(sys.argv[1]), jobs=3, memory_mb=1000, lock_timeout_s=60)
    executor.progress = lambda line: print(line, flush=True)
    executor.run(*plan())
    assert executor.run(*plan())["all"].read_text() == expected()
