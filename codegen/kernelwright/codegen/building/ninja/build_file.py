"""The plan of libraries as a Ninja file: the local executor's actions, for builds that other tools drive."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.codegen.actions import Action, CompilePlan, checked_path
from kernelwright.codegen.backends.registry import ToolchainChoice, backend_for
from kernelwright.codegen.building.memory import SCRIPT
from kernelwright.codegen.building.mounted_trees import MountedTrees
from kernelwright.codegen.building.ninja.step import ROOTS, TREES, StepRequest, generator_digest, stamp
from kernelwright.codegen.building.sync import sync_folder
from kernelwright.codegen.packaging.provenance import FILE as STATEMENT
from kernelwright.codegen.packaging.provenance import sha256
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.planning.models import NamedModel, models_of
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.toolchains.python import files_digest, is_python, located, python_argv
from kernelwright.codegen.trees import cache_mount, find_tree, mount
from kernelwright.codegen.violations import SpecError

FILE = "build.ninja"
_SLOTS, _MEMORY = "__slots.sh", "__memory"
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
    """Write ``<out>/build.ninja``, which builds what ``build_libraries`` does except ``costs.json``; returns its path.

    That is ``<arch>/lib<name>.so``, its manifest and its statement for each selection. The rendered files are written
    below ``out`` too, and toolchains are linked there. Files that did not change are not touched, so Ninja builds only
    what changed. Nothing is compiled. SpecError for a tree without a folder.
    """
    out = out.resolve()
    plans = [
        compile_plan(name, item.arch, item.kernels, backend_for(item.arch, toolchains), models) for item in selections
    ]
    actions = [action for plan in plans for action in plan.all_actions]
    texts = {file.path: file.text for plan in plans for file in plan.all_files} | {_SLOTS: SCRIPT.read_text()}
    texts[ROOTS] = json.dumps({tree: str(Path(root).resolve()) for tree, root in tree_roots.items()}, indent=1) + "\n"
    edges = []
    digests, headers = _mounted(actions, tree_roots, out)
    if headers:
        edges.append(_stamps_edge(digests, headers))
    texts |= {stamp(tree): f"{digest}\n" for tree, digest in digests.items() if tree not in headers}
    for cache in {cache for action in actions for cache in action.caches}:
        (out / cache_mount(cache)).mkdir(parents=True, exist_ok=True)
    (out / _MEMORY).mkdir(parents=True, exist_ok=True)
    edges += [_action_edge(action) for action in actions]
    manifests = []
    for item, plan in zip(selections, plans, strict=True):
        request = f"{item.arch.name}/lib{name}.bundle.json"
        texts[request] = _request(name, item, plan, toolchains, models).model_dump_json(indent=1) + "\n"
        edges.append(_library_edge(request, item.arch.name, plan))
        manifests.append(f"{item.arch.name}/manifest.json")
    texts[FILE] = "\n".join([_HEAD, *edges, f"default {' '.join(map(_path, manifests))}\n"])
    sync_folder(out, texts)
    return out / FILE


def _mounted(
    actions: Sequence[Action], tree_roots: Mapping[str, Path], out: Path
) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Link the trees of actions into ``out``; returns the digest of each, and the files of those with our headers."""
    mounted = MountedTrees({tree: Path(root) for tree, root in tree_roots.items()}, out / TREES)
    digests, headers = {}, {}
    for name in sorted({tree for action in actions for tree in action.trees}):
        view, digests[name] = mounted.get(name)
        link = out / mount(name)
        if not link.is_symlink() or link.readlink() != view:
            link.unlink(missing_ok=True)
            link.symlink_to(view)
        tree = find_tree(name)
        if tree and tree.own:
            matches = tree.tops(Path(tree_roots[name])).values()
            paths = {path.resolve() for match in matches for path in (match.rglob("*") if match.is_dir() else [match])}
            headers[name] = sorted(str(path) for path in paths if path.is_file())
    return digests, headers


def _request(
    name: str,
    item: Selection,
    plan: CompilePlan,
    toolchains: Mapping[str, ToolchainChoice],
    models: Sequence[NamedModel],
) -> StepRequest:
    own = models_of(item.arch, models)
    described = library_json(name, item, plan, toolchains, [one.described for one in own])
    return StepRequest(
        library={key: value for key, value in described.items() if key not in ("files", "actions", "groups")},
        trees=sorted({tree for action in plan.all_actions for tree in action.trees}),
        rendered={file.path: sha256(file.text.encode()) for file in plan.all_files},
        models={f"{one.name}.json": one.model.digest for one in own},
        generator=generator_digest(),
    )


def _stamps_edge(digests: Mapping[str, str], headers: Mapping[str, Sequence[str]]) -> str:
    """The edge that recomputes digests of our own headers when one is newer; commands run again if a digest differs."""
    command = _step("trees", *(f"{tree}={digests[tree]}" for tree in headers))
    files = sorted({path for paths in headers.values() for path in paths})
    return _edge([stamp(tree) for tree in headers], [], files, command, "Digest headers") + "  restat = 1\n"


def _step(*arguments: str) -> list[str]:
    return python_argv("kernelwright.codegen.building.ninja.step", *arguments)


def _action_edge(action: Action) -> str:
    environment = [*(f"{key}={value}" for key, value in action.env), f"KERNELWRIGHT_MEMORY_MB_{action.memory_mb}=1"]
    if is_python(action.argv):  # another generator makes another command, which Ninja runs again
        environment.append(f"KERNELWRIGHT_GENERATOR={files_digest()}")
    command = ["env", "-i", *environment, "/bin/sh", _SLOTS, "run", *located(action.argv)]
    also = [*map(stamp, action.trees), _SLOTS]
    outputs = [checked_path(output, "output") for output in action.outputs]
    return _edge(outputs, action.inputs, also, command, action.description)


def _library_edge(request: str, folder: str, plan: CompilePlan) -> str:
    """The edge that writes the manifest and statement of a library."""
    read = [path for kernel in plan.kernels for path in (*kernel.objects, kernel.report, kernel.counts) if path]
    inputs = list(dict.fromkeys([request, plan.library, *read]))
    outputs = [f"{folder}/manifest.json", f"{folder}/{STATEMENT}"]
    return _edge(outputs, inputs, [], _step("library", request, folder), f"Describe {plan.library}")


def _edge(
    outputs: Sequence[str], inputs: Sequence[str], also: Sequence[str], command: Sequence[str], about: str
) -> str:
    made = " ".join(map(_path, outputs))
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
