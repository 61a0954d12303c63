"""The plan of libraries as a Ninja file: the actions that the local executor runs, for builds that others drive."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import kernelwright  # pants: no-infer-dep
from kernelwright.codegen.actions import Action, CompilePlan, checked_path
from kernelwright.codegen.backends.registry import ToolchainChoice, backend_for
from kernelwright.codegen.building.memory import SCRIPT
from kernelwright.codegen.building.mounted_trees import mount_tree
from kernelwright.codegen.building.sync import sync_folder
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.planning.models import NamedModel, models_of
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.trees import cache_mount, find_tree, mount
from kernelwright.codegen.violations import SpecError

FILE = "build.ninja"
# Ninja runs it without the search path of the process that writes the file.
_GENERATOR = """\
import runpy, sys
sys.path += sys.argv.pop(1).split(":")
runpy.run_module("kernelwright.codegen", run_name="__main__", alter_sys=True)
""".replace("\n", "; ")
_SLOTS, _MEMORY, _TREES = "__slots.sh", "__memory", "__trees"
_HEAD = """\
# Written by kernelwright build --ninja; written anew, it replaces what changed. Run: ninja -C <this folder>
ninja_required_version = 1.3

rule run
  command = $line
  description = $about
"""


def write_ninja(
    name: str,
    selections: Sequence[Selection],
    toolchains: Mapping[str, ToolchainChoice],
    tree_roots: Mapping[str, Path],
    out: Path,
    models: Sequence[NamedModel] = (),
) -> Path:
    """``<out>/build.ninja``, which builds ``<arch>/lib<name>.so`` and its manifest for each selection; its path.

    The rendered files are written below ``out`` too, and toolchains are linked there. Files that did not change are not
    touched, so Ninja builds only what changed. Nothing is compiled. SpecError for a tree without a folder.
    """
    out = out.resolve()
    plans = [
        compile_plan(name, item.arch, item.kernels, backend_for(item.arch, toolchains), models) for item in selections
    ]
    actions = [action for plan in plans for action in plan.all_actions]
    texts = {file.path: file.text for plan in plans for file in plan.all_files} | {_SLOTS: SCRIPT.read_text()}
    headers = {}
    for tree in sorted({tree for action in actions for tree in action.trees}):
        texts[_stamp(tree)], headers[tree] = _mounted(tree, tree_roots, out)
    for cache in {cache for action in actions for cache in action.caches}:
        (out / cache_mount(cache)).mkdir(parents=True, exist_ok=True)
    (out / _MEMORY).mkdir(parents=True, exist_ok=True)
    edges = [_action_edge(action, headers) for action in actions]
    manifests = []
    for item, plan in zip(selections, plans, strict=True):
        request, edge = _manifest_edge(name, item, plan)
        own = [one.described for one in models_of(item.arch, models)]
        described = library_json(name, item, plan, toolchains, own)
        kept = {key: value for key, value in described.items() if key not in ("files", "actions", "groups")}
        texts[request] = json.dumps({"library": kept}, indent=1, sort_keys=True) + "\n"
        edges.append(edge)
        manifests.append(f"{item.arch.name}/manifest.json")
    texts[FILE] = "\n".join([_HEAD, *edges, f"default {' '.join(map(_path, manifests))}\n"])
    sync_folder(out, texts)
    return out / FILE


def _mounted(tree: str, tree_roots: Mapping[str, Path], out: Path) -> tuple[str, list[str]]:
    """Link a tree into ``out``; the text of its stamp, and its files if they are our own headers."""
    found = find_tree(tree)
    if found is None or tree not in tree_roots:
        raise SpecError(f"no folder was given for tree {tree!r}; given: {', '.join(tree_roots)}")
    root = Path(tree_roots[tree])
    view, digest = mount_tree(root, found, out / _TREES)
    link = out / mount(tree)
    if not link.is_symlink() or link.readlink() != view:
        link.unlink(missing_ok=True)
        link.symlink_to(view)
    matches = found.tops(root).values() if found.own else ()
    files = {path.resolve() for match in matches for path in (match.rglob("*") if match.is_dir() else [match])}
    return f"{digest}\n", sorted(str(path) for path in files if path.is_file())


def _stamp(tree: str) -> str:
    """The file that holds the digest of a tree, so that a command runs again if its toolchain changes."""
    return f"{_TREES}/{tree}.digest"


def _action_edge(action: Action, headers: Mapping[str, Sequence[str]]) -> str:
    environment = [*(f"{key}={value}" for key, value in action.env), f"KERNELWRIGHT_MEMORY_MB_{action.memory_mb}=1"]
    command = ["env", "-i", *environment, "/bin/sh", _SLOTS, "run", *action.argv]
    also = [path for tree in action.trees for path in (_stamp(tree), *headers[tree])]
    return _edge(action.outputs, action.inputs, [*also, _SLOTS], command, action.description)


def _manifest_edge(name: str, item: Selection, plan: CompilePlan) -> tuple[str, str]:
    """The path of the request that describes a library, and the edge that writes its manifest."""
    folder = item.arch.name
    request = f"{folder}/lib{name}.bundle.json"
    read = [path for kernel in plan.kernels for path in (*kernel.objects, *([kernel.report] if kernel.report else []))]
    roots = ":".join(str(Path(path).parent) for path in kernelwright.__path__)
    command = [sys.executable, "-c", _GENERATOR, roots, "bundle", "--request", request, "--folder", folder]
    inputs = list(dict.fromkeys([request, plan.library, *read]))
    return request, _edge([f"{folder}/manifest.json"], inputs, [], command, f"Describe {plan.library}")


def _edge(
    outputs: Sequence[str], inputs: Sequence[str], also: Sequence[str], command: Sequence[str], about: str
) -> str:
    made = " ".join(_path(checked_path(output, "output")) for output in outputs)
    implicit = f" | {' '.join(map(_path, also))}" if also else ""
    lines = [f"build {made}: run {' '.join(map(_path, inputs))}{implicit}"]
    lines += [f"  {key} = {_value(text)}" for key, text in (("line", shlex.join(command)), ("about", about))]
    return "\n".join(lines) + "\n"


def _path(text: str) -> str:
    return "".join(f"${letter}" if letter in "$ :" else letter for letter in _one_line(text))


def _value(text: str) -> str:
    return _one_line(text).replace("$", "$$")


def _one_line(text: str) -> str:
    if "\n" in text:
        raise SpecError(f"{text[:80]!r} has a line break, which a Ninja file cannot hold; build without --ninja")
    return text
