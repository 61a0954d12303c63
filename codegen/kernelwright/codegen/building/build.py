"""Builds libraries on this machine, without Pants: plan, run, write library and manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.actions import CompilePlan
from kernelwright.codegen.backends.registry import ToolchainChoice, backend_for
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.building.store import Cost, write_atomically
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.packaging.bundle import bundle_files, manifest
from kernelwright.codegen.packaging.provenance import file_material
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.planning.models import NamedModel, models_of
from kernelwright.codegen.resources.report import COSTS
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.trees import all_trees
from kernelwright.codegen.violations import SpecError, closest


def build_libraries(
    name: str,
    selections: Sequence[Selection],
    toolchains: Mapping[str, ToolchainChoice],
    executor: LocalExecutor,
    out: Path,
    models: Sequence[NamedModel] = (),
) -> list[Path]:
    """Write ``<out>/<arch>/lib<name>.so``, manifest, statement and ``costs.json`` per selection; returns the manifests.

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
        materials = executor.materials(plan.all_actions)
        contents = library_files(name, item, plan, toolchains, files, executor.costs, models, materials)
        for file, data in contents.items():
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
    materials: Sequence[Mapping[str, Any]] | None = None,
) -> dict[str, bytes]:
    """Return the files of a library's folder after its plan has run; ``files`` and ``costs`` come from the executor.

    ``materials``: what else the commands read, see :meth:`LocalExecutor.materials`; without them there is no statement.
    """
    used = models_of(item.arch, models)
    described = library_json(name, item, plan, toolchains, [one.described for one in used])
    if materials is not None:
        materials = [*materials, *(file_material(f"{one.name}.json", one.model.digest) for one in used)]
    texts = bundle_files(manifest(described, files.__getitem__), materials)
    return {
        plan.library.rpartition("/")[2]: files[plan.library].read_bytes(),
        **{file: text.encode() for file, text in texts.items()},
        COSTS: _costs_text(item, plan, costs).encode(),
    }


def _costs_text(item: Selection, plan: CompilePlan, costs: Mapping[str, Cost]) -> str:
    """Processor seconds and peak megabytes of each kernel's commands, including those of cached results."""
    by_kernel = {}
    for kernel, road in zip(item.kernels, plan.kernels, strict=True):
        taken = [costs[action.id] for action in road.actions if action.id in costs]
        if taken:
            seconds = round(sum(cost.cpu_s for cost in taken), 3)
            by_kernel[kernel.name] = {"cpu_s": seconds, "peak_mb": max(cost.peak_mb for cost in taken)}
    return json.dumps({"kernels": by_kernel}, indent=1, sort_keys=True) + "\n"


def read_tree_roots(path: str | Path) -> dict[str, Path]:
    """Read a JSON file ``{tree: folder}``; SpecError if it is malformed or names an unknown tree."""
    raw = read_json(path)
    if not isinstance(raw, dict) or not all(isinstance(folder, str) for folder in raw.values()):
        raise SpecError(f'{str(path)!r} is no JSON object of tree folders; write {{"zig": folder, …}}')
    roots = {tree: Path(folder) for tree, folder in raw.items()}
    known = [name for name, tree in all_trees().items() if not tree.made_of]
    for tree in roots:
        if tree not in known:
            raise SpecError(f"{path} names an unknown tree {tree!r}{closest(tree, known)}; allowed: {', '.join(known)}")
    return roots
