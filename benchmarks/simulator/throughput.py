"""How fast the simulator executes GEMM: wave-instructions per second and core, two processes, and the time to start.

One fp16 GEMM per architecture (A row-major, B column-major, float32 accumulation), whose result is compared with NumPy
bit by bit, on ``Device("sim:…")`` with everything that belongs to a launch. Prints JSON. Example::

    PYTHONPATH=arch:bindings:simulator python benchmarks/simulator/throughput.py --libraries dist/kernels/gemm/gemm

``--libraries`` has a folder per architecture with a kernel library and its manifest. The files behind
``KERNELWRIGHT_LIBRARY`` and ``KERNELWRIGHT_SIMULATOR_LIBRARY`` are needed unless the packages are installed. A rate is
instructions ÷ CPU seconds of one process, since other work on the machine would count in wall time; scaling is the
ratio of wall times, one process and two in turns, and, since wall times say nothing on a busy machine, also that of CPU
seconds on the longest way: all of one process ÷ (those of the parent + half of those of its two children).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")

# Runs in a fresh interpreter; argv: library, architecture. Prints CPU seconds since its start, and the time of day.
START = """
import sys, time
import numpy as np
from kernelwright.dispatch import Dispatcher, KernelLibrary
library = KernelLibrary.load(sys.argv[1])
a, b = np.ones((32, 32), np.float16), np.ones((32, 32), np.float16).T
out = Dispatcher(library, device="sim:" + sys.argv[2]).gemm(a, b)
print(time.process_time(), time.time())
assert (out == 32).all()
"""
# Baseline of such a process without this package.
NOTHING = "import time, numpy; print(time.process_time(), time.time())"


def summary(values: Sequence[float], digits: int) -> dict[str, Any]:
    """Median and spread."""
    low, high = round(min(values), digits), round(max(values), digits)
    return {"median": round(statistics.median(values), digits), "min": low, "max": high}


class Problem:
    """A GEMM of one architecture, ready for repeated launches."""

    def __init__(self, folder: Path, arch: str, size: int) -> None:
        import numpy as np

        from kernelwright.dispatch import Dispatcher, KernelLibrary

        self.library = KernelLibrary.load(folder / arch)
        self.dispatcher = Dispatcher(self.library, device=f"sim:{arch}")
        random = np.random.default_rng(1)
        self.a = random.integers(-3, 4, (size, size)).astype(np.float16)
        self.b = random.integers(-3, 4, (size, size)).astype(np.float16).T
        self.out = np.zeros((size, size), np.float16)
        self.run()
        expected = self.a.astype(np.float64) @ self.b.astype(np.float64)
        if not (self.out == expected).all():
            raise SystemExit(f"{arch}: the result is wrong; its speed means nothing")

    def run(self) -> None:
        """Launch once."""
        self.dispatcher.gemm(self.a, self.b, out=self.out)

    def rates(self, repeats: int) -> dict[str, Any]:
        """Instructions per CPU second of one process, and wall times of one process and two."""
        from kernelwright.simulator import configure, last_report

        self.run()
        report = last_report()
        assert report is not None
        cpu: dict[int, list[float]] = {1: [], 2: []}
        walls: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(repeats):
            for processes, wall in walls.items():
                with configure(processes=processes):
                    before, children = time.process_time(), _children_cpu()
                    wall.append(_seconds(self.run))
                    own = time.process_time() - before
                    cpu[processes].append(own + (_children_cpu() - children) / processes)
        by_wall = [one / two for one, two in zip(walls[1], walls[2], strict=True)]
        by_cpu = [one / two for one, two in zip(cpu[1], cpu[2], strict=True)]
        return {
            "kernel": report.kernel,
            "wave_instructions": report.instructions,
            "counts": dict(report.counts),
            "wave_instructions_per_cpu_s": summary([report.instructions / seconds for seconds in cpu[1]], 0),
            "wave_instructions_per_wall_s": summary([report.instructions / seconds for seconds in walls[1]], 0),
            "speedup_of_two_processes": summary(by_wall, 2),
            "speedup_of_two_processes_by_cpu": summary(by_cpu, 2),
        }


def start(folder: Path, arch: str, repeats: int) -> dict[str, Any]:
    """Seconds of a fresh process from its start to the end of its first, small launch.

    Uses compiled bytecode, as installers do: a first run, which does not count, writes it to a folder.
    """
    runs = {name: {"cpu": list[float](), "wall": list[float]()} for name in ("start", "nothing")}
    with tempfile.TemporaryDirectory() as bytecode:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": bytecode}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        for turn in range(repeats + 1):
            for name, code in (("start", START), ("nothing", NOTHING)):
                command = [sys.executable, "-c", code, str(folder / arch), arch]
                began = time.time()
                done = subprocess.run(command, check=True, env=environment, capture_output=True, text=True)
                cpu, ended = map(float, done.stdout.split())
                if turn:
                    runs[name]["wall"].append(ended - began)
                    runs[name]["cpu"].append(cpu)
    return {
        "cpu_s": summary(runs["start"]["cpu"], 3),
        "wall_s": summary(runs["start"]["wall"], 3),
        "of_which_python_and_numpy_cpu_s": summary(runs["nothing"]["cpu"], 3),
    }


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _seconds(call: Callable[[], Any]) -> float:
    before = time.perf_counter()
    call()
    return time.perf_counter() - before


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", type=Path, required=True, help="folder with ARCH/manifest.json")
    parser.add_argument("--arch", action="append", choices=ARCHS, help="only these; default: all")
    parser.add_argument("--size", type=int, default=512, help="extent of M, N and K (default 512)")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results = {}
    for arch in options.arch or ARCHS:
        problem = Problem(options.libraries, arch, options.size)
        results[arch] = problem.rates(options.repeats) | {"start": start(options.libraries, arch, options.repeats)}
        print(arch, results[arch]["wave_instructions_per_cpu_s"], results[arch]["start"], file=sys.stderr)
    machine = describe(numpy=version("numpy"), tinygrad=version("tinygrad"))
    problem_text = f"fp16 rcr {options.size}x{options.size}x{options.size}, small integers, result equal to NumPy's"
    print(
        json.dumps(
            {"machine": machine, "problem": problem_text, "repeats": options.repeats, "results": results}, indent=1
        )
    )


if __name__ == "__main__":
    main()
