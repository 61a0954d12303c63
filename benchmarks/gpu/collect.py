"""Times of every plain kernel of a library on the tile engine's problems: what sets and selectors are chosen by.

``python benchmarks/gpu/collect.py --library FOLDER --shipped FOLDER --out FOLDER --seconds 300`` needs folders of
libgemm.so and manifest.json, and $KERNELWRIGHT_LIBRARY. It writes a table of the tile engine for each set of problems:
bf16 before fp8, tuning problems before held-out ones, a set's problems in a shuffled order, so that a run that ends
early holds a fair part. The same command continues where it ended. Held-out problems only measure. Beside the kernels
stand references, as rows of status "reference": torch's calls, and the dispatcher's choices from the library that
``--shipped`` names, and by the compiled model that ``--learned`` names, or by the models that the library contains.
``--choices`` times only the dispatcher's choice from the library, beside torch and the first eight choices of
cuBLASLt's heuristic: the speed of a library that ships.

Each call is compared with an exact product first. Times are medians over operands that leave L2 cold, in turns, short
launches in CUDA graphs. A kernel 1.25 times slower than the fastest one is timed once (``rounds`` in the tags says how
often). Launches above 0.3 ms are timed only where they are predicted, and at first sight are, less than twice as slow.
A kernel that hangs or ends the process costs itself: it is listed in the file ``lost``, and the next process goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

DIRECTIONS = ("forward", "backward_data", "backward_weight")
# Sets of problems, and their shares of the time; time left over by one goes to the next.
JOBS = {
    **{"gemm-tuning-bf16": 4, "gemm-held-out-bf16": 3, "gemm-tuning-fp8": 3, "gemm-held-out-fp8": 2},
    "gemm-held-out-fp16": 3,
    "gemm-tuning-tall-bf16": 3,
    "gemm-tuning-tall-fp8": 3,
    "conv-validation-bf16": 8,
    **{f"conv-tuning-{direction}-{dims}d-bf16": 1 for dims in (2, 3) for direction in DIRECTIONS},
    **{f"attention-{part}-bf16": 2 for part in ("validation", "tuning-all", "tuning-between")},
}
DEFAULT = list(JOBS)[:4]
START_S = 90.0  # seconds for imports, loading and the first problem
SILENT_S = 25.0  # seconds allowed for one launch
WORKER = Path(__file__).with_name("oracle") / "collect_worker.py"


def run_once(command: list[str], current: Path, end: float) -> str:
    """Run a worker. Returns an empty text if it ended well, else what happened to it."""
    current.unlink(missing_ok=True)
    started = time.time()
    worker = subprocess.Popen(command, start_new_session=True)
    try:
        while worker.poll() is None:
            time.sleep(0.5)
            said = current.stat().st_mtime if current.exists() and current.stat().st_size else None
            silent = time.time() - (said or started)
            if silent > (SILENT_S if said else START_S):
                return f"silent for {silent:.0f} s"
            if time.time() > end + SILENT_S:
                return "time is over"
    finally:
        if worker.poll() is None:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    return "" if worker.returncode == 0 else f"exit code {worker.returncode}"


def main() -> int:
    """Run workers until everything is measured or the time is over. Returns 1 if none could start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of libgemm.so and manifest.json")
    parser.add_argument("--shipped", type=Path, help="the folder of the library that ships")
    parser.add_argument(
        "--learned", help="a compiled model, or auto for the library's own: choices by it, as references"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--only", help=f"sets of problems, separated by commas, of {', '.join(JOBS)}")
    parser.add_argument("--choices", action="store_true", help="only the dispatcher's choice, with cuBLASLt's")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    current, lost = options.out / "current", options.out / "lost"
    lost.touch()
    start = time.time()
    wanted = DEFAULT if options.only is None else options.only.split(",")
    whole, given, jobs = sum(JOBS[key] for key in wanted), 0, []
    for key in wanted:
        given += JOBS[key]
        jobs.append(f"{key}={start + given / whole * options.seconds}")
    command = [sys.executable, str(WORKER), "--library", str(options.library), "--out", str(options.out)]
    command += ["--shipped", str(options.shipped)] if options.shipped else []
    command += ["--learned", options.learned] if options.learned else []
    command += ["--choices"] if options.choices else []
    command += [word for job in jobs for word in ("--job", job)]
    while time.time() < start + options.seconds:
        ended = run_once(command, current, start + options.seconds)
        if not ended:
            return 0
        if not current.exists() or not current.stat().st_size:
            print(f"the worker ended before its first launch: {ended}")
            return 1
        _, job, problem, identity, choices = json.loads(current.read_text())
        print(f"lost: {job} {problem} {identity} {choices}: {ended}", flush=True)
        one = {"job": job, "problem": problem, "identity": identity, "choices": choices, "reason": ended}
        with lost.open("a") as file:
            file.write(json.dumps(one) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
