"""Seconds that a JIT build of six convolution kernels takes with one worker and with one for each core, as JSON.

Every build starts without compiled kernels. For AMD, missing kernels are compiled together, in as many batches as there
are workers, so that more workers also share less; sm_90a kernels are compiled one by one. Needs ``kernelwright.jit``
and its toolchains, or KERNELWRIGHT_TREES, and a machine on which nothing else runs. Example::

    export PYTHONPATH=arch:codegen:bindings:jit
    python benchmarks/build/jit_workers.py --out benchmarks/results/jit_workers.json
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe
from results_file import text

from kernelwright.dispatch import Device
from kernelwright.jit import Registry

CASES = {"gfx942": ("hip:0", "True"), "sm_90a": ("cuda:0", "'depthwise' not in c.name")}
SET, COUNT = "convolution:essential", 6


def seconds(arch: str, workers: int, cache: Path) -> float:
    """Seconds of one build; the cache keeps digests of toolchains."""
    device, condition = CASES[arch]
    for folder in ("actions", "libraries"):
        shutil.rmtree(cache / folder, ignore_errors=True)
    registry = Registry(Device(device, arch=arch), cache=cache)
    names = [kernel.name for kernel in Registry(Device(device, arch=arch)).add_set(SET, filter=condition)][:COUNT]
    for name in names:
        registry.add_set(SET, filter=f"c.name == {name!r}")
    assert len(registry.kernels) == COUNT, names
    start = time.perf_counter()
    registry.build(max_workers=workers, progress=False)
    return time.perf_counter() - start


def measured(arch: str, workers: int, rounds: int, cache: Path) -> dict[str, Any]:
    """Medians over ``rounds``, in which both take turns; excludes a first build, which reads toolchains."""
    seconds(arch, workers, cache)
    pairs = [(seconds(arch, 1, cache), seconds(arch, workers, cache)) for _ in range(rounds)]
    ratios = sorted(one / many for one, many in pairs)
    return {
        "arch": arch,
        "kernels": COUNT,
        "one_worker_s": round(statistics.median(one for one, _ in pairs), 1),
        "workers_s": round(statistics.median(many for _, many in pairs), 1),
        "speed_up": [round(statistics.median(ratios), 2), round(ratios[0], 2), round(ratios[-1], 2)],
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--arch", action="append", choices=list(CASES), default=None)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    machine = describe()
    with tempfile.TemporaryDirectory() as cache:
        cases = [measured(arch, options.workers, options.rounds, Path(cache)) for arch in options.arch or list(CASES)]
    result = text({"machine": machine, "workers": options.workers}, cases, "cases")
    if options.out:
        options.out.write_text(result)
    print(result, end="")


if __name__ == "__main__":
    main()
