"""How long a build of many kernels takes on N workers, and what limits it: a simulation with recorded action times.

Kernels are drawn, with a fixed seed, from a recording of ``compile_cost.py`` (``--recorded``): AMD kernels whose steps
were measured one by one; each kernel is the chain of actions that its plan has. The client hands actions out in
the order in which they become ready, one after the other, at ``--client-s`` CPU seconds each; a worker runs one action
at a time and adds ``--worker-s`` for staging; its first action also waits for the toolchains. Groups of 64 objects are
linked where they are ready, the library at last. Prints JSON. Example::

    python benchmarks/build/makespan.py --kernels 14000 > benchmarks/results/makespan_14000.json
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from machine import describe

_RECORDED = Path(__file__).resolve().parents[1] / "results/compile_cost_lean.json"
_WORKERS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000)
_GROUP = 64


@dataclass(frozen=True)
class Costs:
    """Seconds of costs outside the recording; ``planning`` is spent once, before the first action."""

    client: float
    worker: float
    toolchains: float
    group: float
    link: float
    planning: float


def recorded_chains(path: Path) -> list[tuple[float, ...]]:
    """The CPU seconds of the actions of each AMD kernel in order."""
    kernels = json.loads(path.read_text())["kernels"]
    chains = [
        tuple(step["cpu_s"]["median"] for step in kernel["steps"].values())
        for kernel in kernels
        if kernel["arch"].startswith("gfx")
    ]
    assert chains, f"{path} has no AMD kernel"
    return chains


def makespan(chains: Sequence[tuple[float, ...]], workers: int, costs: Costs) -> float:
    """Seconds from the start to the library, by list scheduling: longest kernels first, each chain on any workers.

    Every action passes through the client before it starts, in the order in which actions become ready.
    """
    order = sorted(range(len(chains)), key=lambda kernel: -sum(chains[kernel]))
    # (when ready, priority, kernel, step); a worker is (when free, whether it has the toolchains).
    ready = [(costs.planning, rank, kernel, 0) for rank, kernel in enumerate(order)]
    free = [(0.0, number) for number in range(workers)]
    prepared: set[int] = set()
    client = costs.planning
    finished = [0.0] * len(chains)
    while ready:
        when, rank, kernel, step = heapq.heappop(ready)
        client = max(client, when) + costs.client
        idle, worker = heapq.heappop(free)
        start = max(client, idle) + (0.0 if worker in prepared else costs.toolchains)
        prepared.add(worker)
        end = start + costs.worker + chains[kernel][step]
        heapq.heappush(free, (end, worker))
        if step + 1 < len(chains[kernel]):
            heapq.heappush(ready, (end, rank, kernel, step + 1))
        else:
            finished[kernel] = end
    groups = [max(finished[first : first + _GROUP]) for first in range(0, len(finished), _GROUP)]
    linked = sorted(groups)
    for number, when in enumerate(linked):
        linked[number] = max(when, client) + costs.client + costs.worker + costs.group
        client = max(when, client) + costs.client
    return max(linked) + costs.client + costs.worker + costs.link


def bounds(chains: Sequence[tuple[float, ...]], workers: int, costs: Costs) -> dict[str, float]:
    """Lower bounds of any schedule, by cause."""
    actions = sum(map(len, chains))
    longest = max(sum(chain) + len(chain) * costs.worker for chain in chains)
    tail = costs.group + costs.link + 2 * costs.worker
    return {
        "workers": (sum(map(sum, chains)) + actions * costs.worker) / workers + costs.toolchains,
        "client": costs.planning + actions * costs.client,
        "longest chain": costs.planning + costs.toolchains + longest + tail,
    }


def simulate(chains: Sequence[tuple[float, ...]], costs: Costs) -> list[dict[str, Any]]:
    """One row per number of workers."""
    rows: list[dict[str, Any]] = []
    for workers in _WORKERS:
        limits = bounds(chains, workers, costs)
        seconds = makespan(chains, workers, costs)
        rows.append(
            {
                "workers": workers,
                "makespan_s": round(seconds, 1),
                "busy": round(sum(map(sum, chains)) / (seconds * workers), 3),
                "limit": max(limits, key=lambda name: limits[name]),
                "bounds_s": {name: round(bound, 1) for name, bound in limits.items()},
            }
        )
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recorded", type=Path, default=_RECORDED, help="default: %(default)s")
    parser.add_argument("--kernels", type=int, default=14000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--client-s", type=float, default=0.045, help="Pants' CPU seconds for an action")
    parser.add_argument("--worker-s", type=float, default=0.25, help="staging and collecting on a worker, per action")
    parser.add_argument("--toolchains-s", type=float, default=8.0, help="0.5 GB to a new worker at 0.5 Gbit/s")
    parser.add_argument("--group-s", type=float, default=1.0, help="link of a group of objects")
    parser.add_argument("--link-s", type=float, default=5.0, help="link of all groups")
    parser.add_argument("--planning-s", type=float, default=30.0, help="rendering and planning all kernels")
    options = parser.parse_args()
    costs = Costs(
        options.client_s,
        options.worker_s,
        options.toolchains_s,
        options.group_s,
        options.link_s,
        options.planning_s,
    )
    recorded = recorded_chains(options.recorded)
    draw = random.Random(options.seed)
    chains = [draw.choice(recorded) for _ in range(options.kernels)]
    joined = [(sum(chain),) for chain in chains]
    result = {
        "machine": describe(),
        "recorded": f"{options.recorded.name}: {len(recorded)} kernels",
        "kernels": options.kernels,
        "actions": sum(map(len, chains)),
        "cpu_hours": round(sum(map(sum, chains)) / 3600, 1),
        "costs_s": asdict(costs),
        "as_planned": simulate(chains, costs),
        "one_action_per_kernel": simulate(joined, costs),
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
