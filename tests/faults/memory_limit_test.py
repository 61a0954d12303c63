"""Commands that really take memory, under limits that the kernel enforces: slots keep them within, and only slots do.

A machine with a tenth of 4 GB and compiles of a tenth of 3 GB; KERNELWRIGHT_MEMORY_MB=4000 is the full size.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.workspace import ROOT

sys.path.append(str(ROOT / "rules"))
from kernelwright.pants.util_rules.slots import waiting

LIMIT_MB = int(os.environ.get("KERNELWRIGHT_MEMORY_MB", "400"))
COMPILE_MB = LIMIT_MB * 3 // 4
COMMANDS = 2

# Takes memory, says so, and keeps it until it has company or some time has passed.
_COMPILE = """
import sys, time
from pathlib import Path
folder, me, megabytes, seconds = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])
taken = b"x" * (megabytes << 20)
(folder / f"{me}.running").touch()
until = time.monotonic() + seconds
while time.monotonic() < until and not (folder / "together").exists():
    if len(list(folder.glob("*.running"))) > 1:
        (folder / "together").touch()
    time.sleep(0.02)
(folder / f"{me}.running").unlink()
"""
# The same through the slots of `kernelwright build`.
_HOLD = """
import subprocess, sys
from pathlib import Path
from kernelwright.codegen.building.memory import MemorySlots, machine_memory_mb
with MemorySlots(Path("__memory"), machine_memory_mb()).hold(int(sys.argv[1])):
    sys.exit(subprocess.run(sys.argv[2:]).returncode)
"""


@contextlib.contextmanager
def control_group() -> Iterator[Path]:
    """A control group of LIMIT_MB without swap, below ours; the test is skipped where we may not make one."""
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    groups = {controllers: group.strip("/") for _, controllers, group in lines}
    first = Path("/sys/fs/cgroup/memory", groups.get("memory", ""))
    second = Path("/sys/fs/cgroup", groups.get("", ""))
    folder, files = (
        (first, ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"))
        if (first / "memory.limit_in_bytes").exists()
        else (second, ("memory.max", "memory.swap.max"))
    )
    group = folder / f"kernelwright-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        if not (group / files[0]).exists():
            pytest.skip(f"{folder} does not lend its memory controller")
        (group / files[0]).write_text(f"{LIMIT_MB << 20}")
        if (group / files[1]).exists():
            (group / files[1]).write_text(f"{LIMIT_MB << 20 if files[0] != 'memory.max' else 0}")
        yield group
    finally:
        for _ in range(100):  # until the kernel has taken leave of killed processes
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)


@pytest.fixture
def group() -> Iterator[Path]:
    with control_group() as group:
        yield group


def start(folder: Path, number: int, by: str, enter: str) -> subprocess.Popen[bytes]:
    """A compile, started ``by`` Pants' slots, ``kernelwright build``'s or none; ``enter`` limits a shell."""
    seconds = "5" if by == "nobody" else "0.3"
    command = (sys.executable, "-c", _COMPILE, str(folder), str(number), str(COMPILE_MB), seconds)
    env = {"PATH": "/usr/bin:/bin"}
    if by == "pants":
        slot = waiting(command, COMPILE_MB)
        command, env[slot.variable] = slot.argv, "1"
    elif by == "kernelwright build":
        command = (sys.executable, "-c", _HOLD, str(COMPILE_MB), *command)
        env["PYTHONPATH"] = str(ROOT / "codegen")
    shell = ("/bin/sh", "-c", f'{enter}\nexec "$@"', "sh")
    return subprocess.Popen([*shell, *command], cwd=folder, env=env, stderr=subprocess.DEVNULL)


def run(folder: Path, by: str, enter: str) -> list[int]:
    """Exit codes of all commands, started at once."""
    (folder / "__memory").mkdir()
    return [process.wait(timeout=300) for process in [start(folder, n, by, enter) for n in range(COMMANDS)]]


BY = pytest.mark.parametrize("by", ["pants", "kernelwright build"])


@BY
def test_large_compiles_survive_in_a_small_control_group(tmp_path: Path, group: Path, by: str) -> None:
    assert run(tmp_path, by, f'echo $$ >"{group}/cgroup.procs"') == [0] * COMMANDS
    assert not (tmp_path / "together").exists()


def test_without_slots_the_kernel_kills_them(tmp_path: Path, group: Path) -> None:
    codes = run(tmp_path, "nobody", f'echo $$ >"{group}/cgroup.procs"')
    assert any(codes), "two of these compiles fit in the group, so the tests above show nothing"


@BY
def test_large_compiles_take_turns_where_address_space_is_limited(tmp_path: Path, by: str) -> None:
    assert run(tmp_path, by, f"ulimit -v {LIMIT_MB << 10}") == [0] * COMMANDS
    assert not (tmp_path / "together").exists()


def test_without_slots_they_run_together(tmp_path: Path) -> None:
    assert run(tmp_path, "nobody", f"ulimit -v {LIMIT_MB << 10}") == [0] * COMMANDS
    assert (tmp_path / "together").exists()
