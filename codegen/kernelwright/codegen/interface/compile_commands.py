"""Compile commands for editors: the content of a ``compile_commands.json`` for a clang of their own.

The commands are those of a build, for a plain clang: what zig's driver adds by itself is written out, and libc, libc++,
HIP, CK Tile, CUDA and CUTLASS come from the pinned wheels.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.codegen.actions import Action
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.selection import load_archs, select_listed
from kernelwright.codegen.trees import all_trees, mount
from kernelwright.codegen.violations import SpecError, closest, typed

_KEYS = ("stage", "kernels", "toolchains", "directory", "include")
# An editor does not run the compiler, so the headers of a toolchain are enough.
_HEADERS: Mapping[str, tuple[str, ...]] = {
    "zig": ("ziglang/lib/libcxx/include/**", "ziglang/lib/libc/include/**"),
    "cuda": ("nvidia/cu13/**/include/**", "nvidia/cu13/include/**", "nvidia/cu13/nvvm/libdevice/**"),
}


def compile_commands(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Respond to a request of stage "compile_commands", see :mod:`kernelwright.codegen.interface.protocol`.

    Each C or C++ file appears once, with the command of the first kernel that needs it. Raises SpecError for a request
    of another shape and for illegal kernels.
    """
    for key in raw:
        if key not in _KEYS:
            raise SpecError(f"request has an unknown key {key!r}{closest(key, _KEYS)}; allowed: {', '.join(_KEYS)}")
    directory, include = typed(raw, "directory", str, ""), typed(raw, "include", str, None)
    for key, path in (("directory", directory), ("include", include)):
        if path is not None and not path.startswith("/"):
            raise SpecError(f"request key {key!r} is {path!r}; allowed: an absolute path")
    toolchains = typed(raw, "toolchains", dict, {})
    plans = [
        compile_plan("editor", item.arch, item.kernels, backend_for(item.arch, toolchains, for_editor=True))
        for item in select_listed(typed(raw, "kernels", list, []), load_archs(), None)
    ]
    compiles = [action for plan in plans for action in plan.all_actions if action.source is not None]
    mounted = sorted({tree for action in compiles for tree in action.trees})
    ours = [name for name, tree in all_trees().items() if tree.own]
    return {
        "commands": _commands(compiles, directory, include, ours),
        "files": [{"path": file.path, "text": file.text} for plan in plans for file in plan.all_files],
        "trees": {name: list(_HEADERS.get(name, ("**",))) for name in mounted if not (include and name in ours)},
    }


def _commands(
    compiles: Iterable[Action], directory: str, include: str | None, ours: Iterable[str]
) -> list[dict[str, Any]]:
    """Return one entry per source, sorted; our own headers and launchers come from ``include`` if it is given."""
    own_tree = re.compile(rf"(?:{'|'.join(map(mount, ours))})(/include)?(?=/|$)")

    def located(word: str) -> str:
        if not include:
            return word
        headers = include.rstrip("/")
        return own_tree.sub(lambda match: headers if match[1] else headers.rpartition("/")[0], word)

    by_file: dict[str, dict[str, Any]] = {}
    for action in compiles:
        file = located(action.source or "")
        arguments = [located(word) for word in action.argv]
        by_file.setdefault(file, {"directory": directory, "file": file, "arguments": arguments})
    return [by_file[file] for file in sorted(by_file)]
