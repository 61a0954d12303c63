"""What the shipped sets build, in one comparable form: names, identities, digests of commands and generated files.

A move of code must leave all of it as it is. After an intended change, write the goldens anew and review the
difference: ``PYTHONPATH=arch:codegen python tests/goldens/shipped.py``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.operation import operation as find_operation

SETS = {
    "gemm": ("gemm", "release"),
    "convolution": ("convolution", "release"),
    "attention": ("attention", "release"),
    "norm": ("norm", "default"),
}
"""What is shipped: file of goldens → operation and set."""


def digest(value: list[Any]) -> str:
    """The first 16 hex digits of the sha256 of a value as JSON."""
    assert value, "nothing to compare"
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def goldens(name: str) -> Path:
    """The file of a set's goldens."""
    return Path(__file__).with_name(f"{name}.json")


def archs(name: str) -> tuple[str, ...]:
    """The architectures that a set is shipped for."""
    operation, kernels = SETS[name]
    return find_operation(operation).sets.archs(kernels)


def described(name: str, arch: str) -> dict[str, Any]:
    """The library of a shipped set for ``arch``: every kernel by name, then what the library itself adds."""
    operation, kernels_of = SETS[name]
    asked = {"stage": "plan", "name": operation, "archs": [arch], "set": f"{operation}:{kernels_of}"}
    (library,) = respond(asked)["libraries"]
    kernels = {
        kernel["name"]: [kernel["identity"][:16], _commands(library, kernel["name"]), _files(library, kernel["name"])]
        for kernel in library["kernels"]
    }
    own = [item for item in library["actions"] if not any(_is_of(item["id"], name) for name in kernels)]
    return {
        "kernels": kernels,
        "library": {item["id"]: digest(_command(item)) for item in own},
        "table": digest([file["text"] for file in library["files"] if file["path"].endswith("_table.c")]),
    }


def _commands(library: dict[str, Any], name: str) -> str:
    return digest([_command(item) for item in library["actions"] if _is_of(item["id"], name)])


def _is_of(action: str, kernel: str) -> bool:
    """Whether an action such as ``link:gfx942/<kernel>`` or ``compile x86/<kernel>.o`` belongs to this kernel."""
    return action.endswith((f"/{kernel}", f"/{kernel}.o"))


def _command(action: dict[str, Any]) -> list[Any]:
    return [action[key] for key in ("argv", "inputs", "outputs", "trees", "env", "caches", "memory_mb")]


def _files(library: dict[str, Any], name: str) -> str:
    stem = f"/{name}."
    return digest([[file["path"], file["text"]] for file in library["files"] if stem in file["path"]])


def text(name: str) -> str:
    """Goldens of every shipped architecture, as the file of an operation holds them: a line for each kernel."""
    each = ",\n".join(f' "{arch}": {{{_lines(described(name, arch))}\n }}' for arch in archs(name))
    return f"{{\n{each}\n}}\n"


def _lines(described: dict[str, Any]) -> str:
    kernels = ",\n".join(f"   {json.dumps(kernel)}: {json.dumps(row)}" for kernel, row in described["kernels"].items())
    rest = "".join(f',\n  "{key}": {json.dumps(described[key])}' for key in ("library", "table"))
    return f'\n  "kernels": {{\n{kernels}\n  }}{rest}'


if __name__ == "__main__":
    for each in SETS:
        goldens(each).write_text(text(each))
