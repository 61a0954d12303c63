"""Builds kernels one after the other, runs each in the simulator, and appends what came of it to a file.

    python -m gemm.amd.record --trees TREES --cache FOLDER --out templates.jsonl [--seconds 3600] [ARCH …]

One JSON object per line: architecture, template, kernel, problems that passed, resources, and ``result``: "right", or
the error. Kernels that the file has already are left out, so a run goes on where the last one ended.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path

from gemm.amd import simulated, variant_cases, variants
from gemm.amd.templates import Template, members, templates
from kernelwright.arch import load
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries, read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.dispatch import KernelEntry, KernelLibrary
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device

ARCHS = ("gfx942", "gfx1201", "gfx950", "gfx90a", "gfx1100")
_ALL = Checks(uninitialised=True, races=True, waits=True)
_CHECKED = 2  # the case that runs with all checks


def build(kernel: Kernel, executor: LocalExecutor, out: Path) -> tuple[KernelLibrary, KernelEntry]:
    """A library with this kernel alone. ActionError, with all output, if a command fails."""
    build_libraries("gemm", [Selection(load(kernel.arch), (kernel,), {})], DEFAULT_TOOLCHAINS, executor, out)
    library = KernelLibrary.load(out / kernel.arch)
    (entry,) = library.kernels
    return library, entry


def run(library: KernelLibrary, entry: KernelEntry) -> int:
    """The number of problems, all that shipped kernels are tested on; AssertionError for a wrong result."""
    if variants.is_plain(entry):
        plain = simulated.Bench(library, entry)
        runs = [lambda case=case: plain.run(case) for case in simulated.cases_of(entry)]
    else:
        bench = variants.Bench(library, entry)
        runs = [lambda case=case: bench.run(case) for case in variant_cases.cases_of(entry)]
    for number, one in enumerate(runs):
        with device.configure(checks=_ALL if number == _CHECKED else Checks()):
            one()
    return len(runs)


def order(archs: list[str]) -> Iterator[Template]:
    """Members of sets, then each template in turn: on all architectures, then the next one."""
    for several in (members, templates):
        rounds = zip_longest(*(several(arch) for arch in archs))
        yield from (template for template in chain.from_iterable(rounds) if template is not None)


def _one(template: Template, executor: LocalExecutor) -> dict[str, object]:
    kernel, outcome = template.kernel, dict[str, object](problems=0)
    row = {"arch": kernel.arch, "template": template.label, "kernel": kernel.name, "identity": kernel.identity}
    began = time.process_time()
    try:
        with tempfile.TemporaryDirectory() as out:
            library, entry = build(kernel, executor, Path(out))
            outcome["resources"] = entry.resources
            outcome["problems"] = run(library, entry)
        outcome["result"] = "right"
    except Exception as error:  # whatever goes wrong is the record
        outcome["result"] = f"{type(error).__name__}: {error}"[:600]
    return {**row, **outcome, "simulation_cpu_s": round(time.process_time() - began, 1)}


def main() -> None:
    """See the module."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("archs", nargs="*", default=list(ARCHS))
    arguments.add_argument("--trees", required=True)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--cache", type=Path, required=True)
    arguments.add_argument("--seconds", type=float, default=float("inf"), help="begin no kernel later than this")
    chosen = arguments.parse_args()
    rows = [json.loads(line) for line in chosen.out.open()] if chosen.out.exists() else []
    done = {(row["template"], row["identity"]) for row in rows}
    executor = LocalExecutor(read_tree_roots(chosen.trees), chosen.cache)
    end = time.monotonic() + chosen.seconds
    for template in order(chosen.archs):
        if (template.label, template.kernel.identity) in done:
            continue
        if time.monotonic() > end:
            break
        with chosen.out.open("a") as out:
            out.write(json.dumps(_one(template, executor)) + "\n")


if __name__ == "__main__":
    main()
