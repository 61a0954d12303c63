"""CPU seconds and peak memory of AMD kernels that JIT compiles together, against compiles of each kernel alone.

Of each architecture and set it takes up to 8 kernels, compiles them as one batch and one by one, in turns, and compares
what comes out byte for byte. Prints JSON. Example::

    PYTHONPATH=arch:codegen python benchmarks/build/batches.py --trees trees.json --out benchmarks/results/batches.json
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

from kernelwright.arch import load
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for, toolchains_for
from kernelwright.codegen.batching.batch import MOST
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.batches import batches
from kernelwright.codegen.planning.compile_plan import kernel_actions
from kernelwright.codegen.selecting.sets import expand_set

CASES = ("gfx942:gemm:essential", "gfx942:convolution:essential", "gfx1201:gemm:essential")


def compiled(kernels: Sequence[Kernel], trees: Mapping[str, Path], cache: Path, together: bool) -> dict[str, Any]:
    """CPU seconds of all compiles, peak megabytes of one command, and the assembly by kernel."""
    arch = load(kernels[0].arch)
    backend = backend_for(arch, DEFAULT_TOOLCHAINS)
    roads = [kernel_actions(kernel, arch, backend) for kernel in kernels]
    compiles = [road.actions[0] for road in roads]
    joined = batches(kernels, arch, roads, backend, compiles, 1) if together else []
    shutil.rmtree(cache / "actions", ignore_errors=True)  # keeps only the digests of the trees
    executor = LocalExecutor(trees, cache)
    made = executor.run([file for road in roads for file in road.files], compiles, batches=joined)
    costs = executor.costs.values()
    reports = {kernel.name: road.actions[0].outputs[0] for kernel, road in zip(kernels, roads, strict=True)}
    return {
        "cpu_s": round(sum(cost.cpu_s for cost in costs), 2),
        "peak_mb": max(cost.peak_mb for cost in costs),
        "assembly": {name: made[path].read_bytes() for name, path in reports.items()},
    }


def measured(case: str, trees: Mapping[str, Path], cache: Path) -> dict[str, Any]:
    """One entry of the result."""
    name, _, kernel_set = case.partition(":")
    kernels = sorted(expand_set(kernel_set, load(name)).kernels[:MOST], key=lambda kernel: kernel.name)
    together, singly = (compiled(kernels, trees, cache, way) for way in (True, False))
    same = together.pop("assembly") == singly.pop("assembly")
    count = len(kernels)
    return {
        "arch": name,
        "set": kernel_set,
        "kernels": [kernel.name for kernel in kernels],
        "together": {**together, "cpu_s_each": round(together["cpu_s"] / count, 2)},
        "singly": {**singly, "cpu_s_each": round(singly["cpu_s"] / count, 2)},
        "cpu_ratio": round(together["cpu_s"] / singly["cpu_s"], 3),
        "same_assembly": same,
    }


def main() -> None:
    """Measure and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trees", required=True, help="a JSON file that says where each tree is")
    parser.add_argument(
        "--case", action="append", default=[], help=f"ARCH:SET, may be repeated; else {', '.join(CASES)}"
    )
    parser.add_argument("--out", type=Path, help="write the JSON here as well")
    options = parser.parse_args()
    cases = options.case or CASES
    versions = {
        kind: made.identity
        for case in cases
        for kind, made in toolchains_for(load(case.partition(":")[0]), DEFAULT_TOOLCHAINS).items()
    }
    machine = describe(**versions)
    with tempfile.TemporaryDirectory() as cache:
        measurements = [measured(case, read_tree_roots(options.trees), Path(cache)) for case in cases]
    text = json.dumps({"machine": machine, "cases": measurements}, indent=1) + "\n"
    if options.out:
        options.out.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
