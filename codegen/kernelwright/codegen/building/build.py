"""Building libraries on this machine, without Pants: plan, run, write library and manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.arch.texts import parse_json
from kernelwright.codegen.actions import CompilePlan
from kernelwright.codegen.backends.registry import ToolchainChoice, backend_for
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.building.store import Cost, write_atomically
from kernelwright.codegen.packaging.bundle import manifest_text
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.planning.models import NamedModel, models_of
from kernelwright.codegen.resources.report import COSTS
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.trees import TREES
from kernelwright.codegen.violations import SpecError, closest


def build_libraries(
    name: str,
    selections: Sequence[Selection],
    toolchains: Mapping[str, ToolchainChoice],
    executor: LocalExecutor,
    out: Path,
    models: Sequence[NamedModel] = (),
) -> list[Path]:
    """``<out>/<arch>/lib<name>.so``, ``manifest.json`` and ``costs.json`` for each selection; the manifests' paths.

    Nothing is written below ``out`` if anything fails. Raises ActionError with a failed command's whole output,
    BrokenKernelError for a kernel that compiled to something useless and LimitError for one beyond its limits.
    """
    plans = [
        compile_plan(name, item.arch, item.kernels, backend_for(item.arch, toolchains), models) for item in selections
    ]
    files = executor.run(
        [file for plan in plans for file in plan.all_files], [action for plan in plans for action in plan.all_actions]
    )
    results: dict[Path, bytes] = {}
    for item, plan in zip(selections, plans, strict=True):
        for file, data in library_files(name, item, plan, toolchains, files, executor.costs, models).items():
            results[out / item.arch.name / file] = data
    for path, data in results.items():
        write_atomically(path, data)
    return [path for path in results if path.name == "manifest.json"]


def library_files(
    name: str,
    item: Selection,
    plan: CompilePlan,
    toolchains: Mapping[str, ToolchainChoice],
    files: Mapping[str, Path],
    costs: Mapping[str, Cost],
    models: Sequence[NamedModel] = (),
) -> dict[str, bytes]:
    """What stands in the folder of a library that a plan was run for; ``files`` and ``costs`` are the executor's."""
    described = library_json(name, item, plan, toolchains, [one.described for one in models_of(item.arch, models)])
    return {
        plan.library.rpartition("/")[2]: files[plan.library].read_bytes(),
        "manifest.json": manifest_text(described, files.__getitem__).encode(),
        COSTS: _costs_text(item, plan, costs).encode(),
    }


def _costs_text(item: Selection, plan: CompilePlan, costs: Mapping[str, Cost]) -> str:
    """Processor seconds and peak megabytes of each kernel's commands, those of cached results included."""
    found = {}
    for kernel, road in zip(item.kernels, plan.kernels, strict=True):
        taken = [costs[action.id] for action in road.actions if action.id in costs]
        if taken:
            seconds = round(sum(cost.cpu_s for cost in taken), 3)
            found[kernel.name] = {"cpu_s": seconds, "peak_mb": max(cost.peak_mb for cost in taken)}
    return json.dumps({"kernels": found}, indent=1, sort_keys=True) + "\n"


def read_tree_roots(path: str | Path) -> dict[str, Path]:
    """The folders of a JSON file ``{tree: folder}``; SpecError if it is none or names an unknown tree."""
    try:
        raw = parse_json(Path(path).read_text("utf-8"))
        roots = {tree: Path(folder) for tree, folder in raw.items()}
    except (OSError, ValueError, RecursionError, AttributeError, TypeError) as error:
        raise SpecError(f"{str(path)!r} is no JSON object of tree folders: {error}") from None
    known = [name for name, tree in TREES.items() if not tree.made_of]
    for tree in roots:
        if tree not in known:
            raise SpecError(f"{path} names an unknown tree {tree!r}{closest(tree, known)}; allowed: {', '.join(known)}")
    return roots
