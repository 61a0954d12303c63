"""What the shipped sets build, in one comparable form: names, identities, digests of commands and generated files.

A move of code must leave all of it as it is. After an intended change, write the goldens anew and review the
difference: ``PYTHONPATH=arch:codegen python tests/goldens/shipped.py``.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from kernelwright.arch import names
from kernelwright.codegen.interface.respond import respond

GOLDENS = Path(__file__).with_suffix(".json")
SET = "essential"


def digest(value: list[Any]) -> str:
    """The first 16 hex digits of the sha256 of a value as JSON."""
    assert value, "nothing to compare"
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def described(arch: str) -> dict[str, Any]:
    """The library of the shipped set for ``arch``: every kernel by name, then what the library itself adds."""
    (library,) = respond({"stage": "plan", "name": "gemm", "archs": [arch], "set": SET})["libraries"]
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


def text() -> str:
    """Goldens of every shipped architecture, as the file holds them."""
    return json.dumps({arch: described(arch) for arch in names()}, indent=1) + "\n"


if __name__ == "__main__":
    GOLDENS.write_text(text())
