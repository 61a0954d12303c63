"""Builds after the local store was damaged, and after a build was killed: right bytes or one clear message."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.workspace import ROOT, Run
from faults.builds import CheapBuilds
from faults.conftest import LIBRARIES

KILLS = int(os.environ.get("KERNELWRIGHT_KILLS", "1"))
STORES = int(os.environ.get("KERNELWRIGHT_DAMAGED_STORES", "1"))
FLIPS = 50
LIMIT_S = 900


@pytest.fixture(scope="module")
def expected(build: CheapBuilds) -> list[bytes]:
    return [build.library(n) for n in range(LIBRARIES)]


@pytest.fixture(scope="module")
def built() -> dict[int, bytes]:
    """What builds made after others were killed."""
    return {}


def flip(folder: Path, count: int, dice: random.Random) -> None:
    """Change single bits of the data files, each byte as likely as any other."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock.mdb"]
    sizes = [path.stat().st_size for path in files]
    for path in dice.choices(files, weights=sizes, k=count):
        with open(path, "r+b") as stream:
            position = dice.randrange(path.stat().st_size)
            stream.seek(position)
            old = stream.read(1)[0]
            stream.seek(position)
            stream.write(bytes([old ^ 1 << dice.randrange(8)]))


@pytest.mark.parametrize("seed", range(STORES))
def test_flipped_bits_in_the_store_give_no_wrong_library(
    build: CheapBuilds, expected: list[bytes], tmp_path: Path, seed: int
) -> None:
    sound = tmp_path / "sound"
    build.workspace.stop()
    shutil.copytree(build.store, sound)
    flip(build.store, FLIPS, random.Random(seed))
    shutil.rmtree(build.workspace.root / "dist", ignore_errors=True)
    try:
        run = build.package(*range(LIBRARIES), timeout=LIMIT_S)
        print(f"\nseed {seed}: exit {run.exit_code}, {run.wall_s:.1f} s\n{run.stderr[-3000:]}")
        if run.exit_code == 0:
            assert [build.library(n) for n in range(LIBRARIES)] == expected
            assert all(build.is_whole(n) for n in range(LIBRARIES))
        else:
            assert_names_the_store(run)
    finally:
        build.workspace.stop()
        shutil.rmtree(build.store)
        shutil.move(sound, build.store)


def assert_names_the_store(run: Run) -> None:
    """One message that names the store, whether the damage met us or Pants itself."""
    assert "local store is damaged" in run.stderr and "remove the folder" in run.stderr, run.stderr
    assert "Traceback" not in run.stderr, run.stderr


def damage(store: Path) -> list[str]:
    """Digests of the damaged files of a store, by the program that ``kernelwright doctor --verify`` runs."""
    program = ROOT / "bindings/kernelwright/dispatch/tools/lmdb_shards.py"
    shards = sorted((store / "files").glob("*/data.mdb"))
    said = subprocess.check_output([sys.executable, program, *shards], text=True)
    reports = [json.loads(line) for line in said.splitlines()]
    assert sum(shard["files"] for shard in reports) > 100 and not any(shard["error"] for shard in reports)
    return [digest for shard in reports for digest in shard["damaged"]]


def test_the_doctor_finds_a_damaged_build_file(build: CheapBuilds, tmp_path: Path) -> None:
    build.workspace.stop()
    assert damage(build.store) == []
    store = tmp_path / "store"
    shutil.copytree(build.store, store)
    for path in (store / "files").rglob("data.mdb"):
        data = path.read_bytes()
        path.write_bytes(data.replace(b"tile=[48, 64, 64], warp_tile", b"tile=[48, 64, 72], warp_tile"))
    (digest,) = damage(store)
    assert re.fullmatch("[0-9a-f]{64}", digest)


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_build_that_was_killed_is_built_again(build: CheapBuilds, built: dict[int, bytes], seed: int) -> None:
    """Kills client and daemon, the client alone or the daemon alone; of a running daemon, or one that is to start."""
    dice = random.Random(seed)
    n = LIBRARIES + seed
    build.add(n)
    cold = dice.random() < 0.3
    if cold:
        build.workspace.stop()
    command = [build.workspace.launcher, *build.options, "package", f"t:lib{n}"]
    killed = subprocess.Popen(
        command, cwd=build.workspace.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    victims = dice.choice(("both", "both", "client", "daemon"))
    moment = dice.uniform(0, 15 if cold else 3)
    time.sleep(moment)
    if victims != "client":
        build.workspace.stop(signal.SIGKILL)
    if victims != "daemon":
        os.killpg(killed.pid, signal.SIGKILL)
    killed.wait(LIMIT_S)  # a client without its daemon ends by itself
    run = build.package(n, timeout=LIMIT_S)
    state = "starting" if cold else "running"
    print(f"\nseed {seed}: killed {victims}, daemon {state}, {moment:.2f} s: exit {run.exit_code}, {run.wall_s:.1f} s")
    print(run.stderr[-3000:])
    assert run.exit_code == 0, run.stderr
    assert build.is_whole(n)
    built[n] = build.library(n)


def test_builds_after_kills_are_those_of_an_empty_store(build: CheapBuilds, built: dict[int, bytes]) -> None:
    if len(built) < 2:  # a daemon's start and a build: for full runs
        return
    build.workspace.stop()
    shutil.rmtree(build.store)
    run = build.package(*built, timeout=LIMIT_S)
    assert run.exit_code == 0, run.stderr
    assert {n: build.library(n) for n in built} == built
