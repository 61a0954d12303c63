"""Building libraries on this machine, without Pants: plan, run, write library and manifest."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tilewright.codegen.backends import ToolchainChoice, backend_for
from tilewright.codegen.bundle import manifest_text
from tilewright.codegen.execute import LocalExecutor, write_atomically
from tilewright.codegen.library import library_plan
from tilewright.codegen.protocol import library_json
from tilewright.codegen.select import Selection
from tilewright.codegen.violations import SpecError


def build_libraries(
    name: str,
    selections: Sequence[Selection],
    toolchains: Mapping[str, ToolchainChoice],
    executor: LocalExecutor,
    out: Path,
) -> list[Path]:
    """``<out>/<arch>/lib<name>.so`` and ``manifest.json`` for each selection; the manifests' paths.

    Nothing is written below ``out`` for an architecture whose build fails. Raises ActionError with a failed command's
    whole output.
    """
    written = []
    for selection in selections:
        plan = library_plan(name, selection.arch, selection.kernels, backend_for(selection.arch, toolchains))
        files = executor.run(plan.all_files, plan.all_actions)
        described = library_json(name, selection.arch, plan, selection.kernels, toolchains)
        text = manifest_text(described, files.__getitem__)
        write_atomically(out / plan.library, files[plan.library].read_bytes())
        written.append(out / selection.arch.name / "manifest.json")
        write_atomically(written[-1], text.encode())
    return written


def read_tree_roots(path: str | Path) -> dict[str, Path]:
    """The folders of a JSON file ``{tree: folder}``; SpecError if it is none."""
    try:
        raw = json.loads(Path(path).read_text("utf-8"))
        return {tree: Path(folder) for tree, folder in raw.items()}
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise SpecError(f"{str(path)!r} is no JSON object of tree folders: {error}") from None
