from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kernelwright.codegen.building.memory import MemorySlots, available_memory_mb, machine_memory_mb

# Holds memory, appends its own and the sum of all holders to a log, and ends.
_HOLDER = """
import fcntl, sys, time
from pathlib import Path
from kernelwright.codegen.building.memory import MemorySlots
folder, budget, memory, rounds, log = Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5]
for _ in range(rounds):
    with MemorySlots(folder, budget).hold(memory):
        time.sleep(0.02)
        with open(log, "a") as lines:
            fcntl.flock(lines, fcntl.LOCK_EX)
            held = sum(int(path.suffix[1:]) for path in folder.glob("[!.]*.*"))
            lines.write(f"{memory} {held}\\n")
"""


def hold(folder: Path, budget: int, memory: int, rounds: int, log: Path) -> subprocess.Popen[bytes]:
    arguments = [str(folder), str(budget), str(memory), str(rounds), str(log)]
    return subprocess.Popen([sys.executable, "-c", _HOLDER, *arguments], env={**os.environ})


def test_processes_never_hold_more_than_the_budget(tmp_path: Path) -> None:
    log = tmp_path / "log"
    holders = [hold(tmp_path / "slots", 4000, memory, 8, log) for memory in (3000, 3000, 900, 900, 400)]
    assert [holder.wait(timeout=60) for holder in holders] == [0] * 5
    held = [tuple(map(int, line.split())) for line in log.read_text().splitlines()]
    assert len(held) == 40
    assert max(total for _, total in held) <= 4000
    assert any(total > own for own, total in held), "nothing ever ran side by side, so the test shows nothing"
    assert MemorySlots(tmp_path / "slots", 4000).busy_mb() == 0


def test_more_than_the_budget_runs_alone(tmp_path: Path) -> None:
    slots = MemorySlots(tmp_path, 1000)
    with slots.hold(9000):
        waiter = threading.Thread(target=lambda: slots.hold(10).__enter__())
        waiter.start()
        waiter.join(timeout=0.3)
        assert waiter.is_alive()
    waiter.join(timeout=10)
    assert not waiter.is_alive()


def test_a_killed_holder_gives_its_memory_back(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from kernelwright.codegen.building.memory import MemorySlots\n"
        "with MemorySlots(Path(sys.argv[1]), 100).hold(100): print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout and holder.stdout.readline() == "held\n"
    slots = MemorySlots(tmp_path, 100)
    assert slots.busy_mb() == 100
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with slots.hold(100):
        assert slots.busy_mb() == 100


def test_a_child_keeps_the_memory_of_its_killed_parent(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys; from pathlib import Path\n"
        "from kernelwright.codegen.building.memory import MemorySlots\n"
        "with MemorySlots(Path(sys.argv[1]), 100).hold(60) as descriptor:\n"
        "    child = subprocess.Popen(['sleep', '600'], pass_fds=[descriptor]); print(child.pid, flush=True)\n"
        "    child.wait()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    slots = MemorySlots(tmp_path, 100)
    assert slots.busy_mb() == 60
    os.kill(child, signal.SIGKILL)
    with slots.hold(100):
        assert slots.busy_mb() == 100


def test_this_machine_has_memory() -> None:
    assert 0 < available_memory_mb() <= machine_memory_mb()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


MB = 1 << 20


def limit_within(groups: Path, membership: str) -> int:
    (groups / "membership").write_text(membership)
    return machine_memory_mb(groups / "membership", groups)


def test_every_control_group_around_us_counts(tmp_path: Path) -> None:
    write(tmp_path / "memory.max", "max\n")
    write(tmp_path / "a/memory.max", f"{40 * MB}\n")
    write(tmp_path / "a/b/memory.max", f"{90 * MB}\n")
    write(tmp_path / "b/memory.max", f"{90 * MB}\n")
    write(tmp_path / "c/memory.max", "1\n")
    assert limit_within(tmp_path, "0::/a/b\n") == 40
    assert limit_within(tmp_path, "0::/b\n") == 90
    assert limit_within(tmp_path, "0::/\n") == limit_within(tmp_path, "")


def test_control_groups_of_the_first_version(tmp_path: Path) -> None:
    write(tmp_path / "memory/memory.limit_in_bytes", "9223372036854771712\n")
    write(tmp_path / "memory/a/memory.limit_in_bytes", f"{50 * MB}\n")
    write(tmp_path / "cpu/a/memory.limit_in_bytes", "1\n")
    assert limit_within(tmp_path, "5:cpu,cpuacct:/a\n4:memory:/a\n0::/\n") == 50


def test_a_container_is_the_root_of_its_tree(tmp_path: Path) -> None:
    write(tmp_path / "memory/memory.limit_in_bytes", f"{70 * MB}\n")
    assert limit_within(tmp_path, "4:memory:/docker/0123\n") == 70


def test_the_address_space_is_a_limit() -> None:
    code = (
        "import resource; from kernelwright.codegen.building.memory import machine_memory_mb\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2000 << 20, resource.RLIM_INFINITY)); print(machine_memory_mb())"
    )
    assert int(subprocess.check_output([sys.executable, "-c", code])) == min(2000, machine_memory_mb())


def test_a_script_that_fails_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"slots.sh budget failed .*no_such_file"):
        machine_memory_mb(tmp_path / "no_such_file")
