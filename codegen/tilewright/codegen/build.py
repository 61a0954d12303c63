"""Building libraries on this machine, without Pants: plan, run, write library and manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.codegen.backends import ToolchainChoice, backend_for
from tilewright.codegen.bundle import manifest_text
from tilewright.codegen.execute import LocalExecutor
from tilewright.codegen.library import library_plan
from tilewright.codegen.protocol import library_json
from tilewright.codegen.select import Selection
from tilewright.codegen.store import write_atomically
from tilewright.codegen.violations import SpecError


def build_libraries(
    name: str,
    selections: Sequence[Selection],
    toolchains: Mapping[str, ToolchainChoice],
    executor: LocalExecutor,
    out: Path,
) -> list[Path]:
    """``<out>/<arch>/lib<name>.so`` and ``manifest.json`` for each selection; the manifests' paths.

    Nothing is written below ``out`` if anything fails. Raises ActionError with a failed command's whole output and
    BrokenKernelError for a kernel that compiled to something useless.
    """
    plans = [library_plan(name, item.arch, item.kernels, backend_for(item.arch, toolchains)) for item in selections]
    files = executor.run(
        [file for plan in plans for file in plan.all_files], [action for plan in plans for action in plan.all_actions]
    )
    results: dict[Path, bytes] = {}
    for item, plan in zip(selections, plans, strict=True):
        described = library_json(name, item.arch, plan, item.kernels, toolchains)
        results[out / plan.library] = files[plan.library].read_bytes()
        results[out / item.arch.name / "manifest.json"] = manifest_text(described, files.__getitem__).encode()
    for path, data in results.items():
        write_atomically(path, data)
    return [path for path in results if path.name == "manifest.json"]


def read_tree_roots(path: str | Path) -> dict[str, Path]:
    """The folders of a JSON file ``{tree: folder}``; SpecError if it is none."""
    try:
        raw = json.loads(Path(path).read_text("utf-8"))
        return {tree: Path(folder) for tree, folder in raw.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise SpecError(f"{str(path)!r} is no JSON object of tree folders: {error}") from None
