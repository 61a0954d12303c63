"""Times of every kernel of CPU libraries on the tile engine's problems, with every number of slices.

``python benchmarks/cpu/sweep/collect.py --jobs JOBS.json --out FOLDER --seconds 200 --cores 0-3 --cores 4-7`` starts a
worker for each ``--cores``, whose launches have as many threads as it names CPUs. JOBS.json names the folder of each
operation's library, and sets of problems with what they may cost: ``{"libraries": {"gemm": "lib/gemm"}, "jobs":
[{"key": "gemm-tuning-fp32", "operations": 1e10, "bytes": 2e8, "turn": 0}]}``. Jobs of a lower turn come first; within a
turn all advance alike, each in a shuffled order, so that a run that ends early holds a fair part. The same command
continues where it ended. Tables are FOLDER/KEY.WORKER.csv.

Each call is compared with exact results first. Calls take turns; a kernel 1.25 times slower than the fastest one is
timed once (``rounds`` in the tags says how often), one twice as slow not again. A kernel that hangs or ends its process
costs itself: it is listed in the file ``lost``, and the worker goes on without it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

START_S = 60.0  # seconds for imports, loading and the first problem
SILENT_S = 40.0  # seconds allowed for one launch and its comparison
WORKER = Path(__file__).with_name("worker.py")


def cpus(text: str) -> set[int]:
    """CPU numbers of a list such as 0-3,8."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def run_once(command: list[str], cores: set[int], current: Path, end: float) -> str:
    """Run a worker. Returns an empty text if it ended well, else what happened to it."""
    current.unlink(missing_ok=True)
    started = time.time()
    worker = subprocess.Popen(command, start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    try:
        while worker.poll() is None:
            time.sleep(0.5)
            said = current.stat().st_mtime if current.exists() and current.stat().st_size else None
            if time.time() - (said or started) > (SILENT_S if said else START_S):
                return "hang"
            if time.time() > end + SILENT_S:
                return "time is over"
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    return "" if worker.returncode == 0 else f"exit code {worker.returncode}"


def supervise(options: argparse.Namespace, number: int, end: float) -> None:
    """Restart a worker after each loss, until it is done or the time is over."""
    current, lost = options.out / f"current.{number}", options.out / "lost"
    command = [sys.executable, str(WORKER), "--jobs", str(options.jobs), "--out", str(options.out)]
    command += ["--worker", str(number), "--workers", str(len(options.cores)), "--end", str(end)]
    while time.time() < end:
        ended = run_once(command, cpus(options.cores[number]), current, end)
        if not ended or ended == "time is over":
            return
        if not current.exists() or not current.stat().st_size:
            print(f"worker {number} ended before its first launch: {ended}", flush=True)
            return
        words = json.loads(current.read_text())
        print(f"lost: {words}: {ended}", flush=True)
        with lost.open("a") as file:
            file.write(json.dumps([*words, ended]) + "\n")


def main() -> None:
    """Run the workers in parallel."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--cores", action="append", required=True, help="CPUs of a worker, such as 0-3")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "lost").touch()
    flags = Path("/proc/cpuinfo").read_text()
    said = {
        "processor": next(line.partition(":")[2].strip() for line in flags.splitlines() if line[:10] == "model name"),
        "amx": "amx_tile" in flags, "cpus": os.cpu_count(), "cores": options.cores, "load": os.getloadavg(),
        "system": platform.release(), "python": platform.python_version(), "begin": time.time(),
    }  # fmt: skip
    (options.out / f"machine.{int(time.time())}.json").write_text(json.dumps(said, indent=1) + "\n")
    end = time.time() + options.seconds
    threads = [threading.Thread(target=supervise, args=(options, number, end)) for number in range(len(options.cores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"load at the end: {os.getloadavg()}", flush=True)


if __name__ == "__main__":
    main()
