"""Chooses the GEMM kernels of a release set for gfx942 or gfx950 by predicted times.

``python benchmarks/amd/release.py gfx942 --write`` predicts each candidate on the tuning problems of the tile engine,
beside the kernels of ``gemm:coverage``, and adds those that gain most for a second of compiling, as long as a kernel
gains ``--gain`` of the geometric mean, or until the set comes within 1.5 % of the best (``--reach``). Then it predicts
the set on held-out problems. Writes ``results/amd_release_<arch>.json`` and, with ``--write``, the architecture's list
in ``gemm:release``. Minutes; needs gcc and NumPy.

Times are predicted from counts and constants fitted to measurements that AMD published; never measured by us.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import results_file
from amd.predicted_sets import (
    GROUPS,
    Group,
    Predicted,
    beside_the_matrix_core,
    best,
    candidates,
    covering,
    eligible,
    problems,
    seconds,
    summary,
)

from kernelwright.arch import Arch, load
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.tile_engine.problems.models import HELD_OUT, TUNING
from kernelwright.tile_engine.results.cover import Step
from kernelwright.tile_engine.results.release import add_to_rule_set, choose_release, entry

ROOT = Path(__file__).resolve().parents[2]
RULE_SET = ROOT / "codegen/kernelwright/codegen/operations/gemm/data/rulesets/release.json"
ABOUT = "predicted from counts and constants fitted to measurements that AMD published; never measured by us"


def worth(steps: Sequence[Step], start: float, gain: float) -> int:
    """Number of steps before the first that gains less than this fraction of what was reached."""
    reached = start
    for count, step in enumerate(steps):
        if step.efficiency < reached * (1 + gain):
            return count
        reached = step.efficiency
    return len(steps)


def chosen(arch: Arch, group: Group, reach: float, gain: float) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Results for a group, and its entries of the rule set."""
    cover = covering(arch)
    given = {kernel.identity for kernel in cover}
    every = [*cover, *(kernel for kernel in candidates(arch, group) if kernel.identity not in given)]
    tuning, held_out = (Predicted(arch, every, problems(part, group)) for part in (TUNING, HELD_OUT))
    counted = beside_the_matrix_core(arch, group)
    timed = tuning.timed(lambda kernel: kernel.identity in given or eligible(gemm_spec(kernel), counted))
    release = choose_release(timed, seconds(every, arch), reach, None, given)
    count = worth(release.steps, release.start, gain)
    sets = {
        "coverage": given,
        "release": given | {step.identity for step in release.steps[:count]},
        f"as many as reach {reach}": given | {step.identity for step in release.steps},
    }
    steps = [
        {
            "kernel": step.kernel,
            "mean": round(step.efficiency, 4),
            "seconds": round(step.cost, 1),
            "release": place < count,
        }
        for place, step in enumerate(release.steps)
    ]
    shares = {
        part: {name: summary(best(predicted, identities)) for name, identities in sets.items()}
        for part, predicted in ((TUNING, tuning), (HELD_OUT, held_out))
    }
    us = best(held_out, sets["release"])
    each = {"us, held out": {name: [float(f"{one:.5g}") for one in of] for name, of in us._asdict().items()}}
    kernels = {kernel.identity: kernel for kernel in every}
    specs = [kernels[step.identity].spec.model_dump(mode="json") for step in release.steps[:count]]
    entries = [entry(spec, group.dtype, dtype) for dtype in filter(None, (group.dtype, group.also)) for spec in specs]
    return {**group._asdict(), "candidates": len(every) - len(cover), **shares, "steps": steps, **each}, entries


def rows(report: Mapping[str, Any]) -> Iterator[str]:
    """The lines of docs/benchmarks.md for an architecture: held-out problems."""
    for one in report["results"]:
        coverage, release, near = one[HELD_OUT].values()
        added = sum(step["release"] for step in one["steps"])
        types = ", ".join(filter(None, (one["dtype"], one["also"])))
        yield (
            f"| {report['arch']} | {types} | {one['layout']} | {release['problems']} | {one['candidates']:,} | {added} "
            f"| {_share(coverage)} | {_share(release)} | {len(one['steps'])}: {_share(near)} |"
        )


def _share(of: Mapping[str, Any]) -> str:
    return f"{of['mean']:.2f} ({of['P10']:.2f}, {of['least']:.2f})" if "mean" in of else "–"


def main() -> None:
    """Choose kernels, print the choice, and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arch", choices=("gfx942", "gfx950"))
    parser.add_argument("--reach", type=float, default=0.985, help="share of the best kernels' speed that is enough")
    parser.add_argument("--gain", type=float, default=0.015, help="the least that a kernel gains")
    parser.add_argument("--write", action="store_true", help="write the architecture's list of gemm:release")
    given = parser.parse_args()
    arch = load(given.arch)
    results, entries = [], []
    for group in GROUPS:
        result, listed = chosen(arch, group, given.reach, given.gain)
        results.append(result)
        entries += listed
        print(f"{given.arch} {group.text}: {len(listed)} kernels, held out {result[HELD_OUT]}", flush=True)
    head = {"about": ABOUT, "arch": given.arch, "time_model": arch.time_model, "reach": given.reach, "gain": given.gain}
    out = ROOT / f"benchmarks/results/amd_release_{given.arch}.json"
    out.write_text(results_file.text(head, results))
    print("\n".join(rows({**head, "results": results})))
    if given.write:
        print(f"{RULE_SET.name}: {add_to_rule_set(RULE_SET, given.arch, entries, anew=True)} entries")


if __name__ == "__main__":
    main()
