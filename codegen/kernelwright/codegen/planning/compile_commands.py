"""The compiles of plans as editors want them described: compile_commands.json, and what its commands read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kernelwright.codegen.actions import Action, CompilePlan
from kernelwright.codegen.toolchains.editor import for_clang
from kernelwright.codegen.trees import TREES, mount


def compile_commands(plans: Sequence[CompilePlan], directory: str, include: str | None) -> dict[str, Any]:
    """``entries`` of compile_commands.json, the ``files`` that plans render, and what else must be in ``directory``.

    There is one entry for each C or C++ source. Commands run in ``directory``, an absolute path, below which the files
    go and ``trees`` (patterns of the files that an editor reads, by tree) at ``__<tree>``. With ``include``, the
    absolute path of the folder of our own headers, entries name these headers and not trees.
    """
    actions = [action for plan in plans for action in plan.all_actions if action.source is not None]
    own = [name for name, tree in TREES.items() if tree.origin == "headers"]
    folders = {f"{mount(name)}/include": include.rstrip("/") for name in own} if include else {}
    used = dict.fromkeys(tree for action in actions for tree in action.trees)
    return {
        "entries": _entries(actions, directory, folders),
        "files": [{"path": file.path, "text": file.text} for plan in plans for file in plan.all_files],
        "trees": {name: list(TREES[name].headers) for name in sorted(used) if not (include and name in own)},
    }


def _entries(actions: Iterable[Action], directory: str, folders: Mapping[str, str]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for action in actions:
        file = _placed(action.source or "", folders)
        arguments = [_placed(word, folders) for word in for_clang(action.argv)]
        found.setdefault(file, {"directory": directory, "file": file, "arguments": arguments})
    return [found[file] for file in sorted(found)]


def _placed(word: str, folders: Mapping[str, str]) -> str:
    """A word of a command with the mounts in it replaced by folders."""
    for mounted, folder in folders.items():
        if word.endswith(mounted) or f"{mounted}/" in word:
            return word.replace(mounted, folder, 1)
    return word
