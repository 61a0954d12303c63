"""The generator's own Python as a tool: commands that run a module of the generator wherever a plan runs.

A plan names no interpreter and no folder of this machine. The first word of such a command is :data:`PYTHON`, which the
executor of the plan replaces by an interpreter with the generator's packages and :data:`FILES`. These files are part of
the result's cache key; edits of the rest of the generator rerun nothing.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import kernelwright  # pants: no-infer-dep
from kernelwright.codegen.toolchains.host import Command

PYTHON = "__python"
"""The first word of a command for the generator's Python; ``-m`` and a module name follow."""

FILES = (
    "kernelwright/codegen/__init__.py",
    "kernelwright/codegen/resources/__init__.py",
    "kernelwright/codegen/resources/amd/*.py",
    "kernelwright/files/__init__.py",
    "kernelwright/files/strict_json.py",
    "kernelwright/files/counts/*.py",
    "kernelwright/files/instruction_sets/*.json",
)
"""Patterns of everything that these modules import and read; tests beside them are left out."""

# The interpreter runs this without the search path of this process.
_RUN = """\
import runpy, sys
sys.path += sys.argv.pop(1).split(":")
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
""".replace("\n", "; ")


def module_command(module: str, *arguments: str, memory_mb: int) -> Command:
    """Return ``python -m module arguments`` as a command of a plan; it may import only :data:`FILES` and numpy."""
    # On a machine with many processors, OpenBLAS would reserve memory for each of them.
    env = (("OPENBLAS_NUM_THREADS", "1"),)
    return Command((PYTHON, "-m", module, *arguments), (), env, (), memory_mb)


def located(argv: Sequence[str]) -> list[str]:
    """Return a command as this machine runs it: with this process's interpreter in place of the generator's Python."""
    return python_argv(argv[2], *argv[3:]) if is_python(argv) else list(argv)


def python_argv(module: str, *arguments: str) -> list[str]:
    """Return the command line that runs a module of the generator with this interpreter and an empty environment."""
    roots = ":".join(str(Path(path).resolve().parent) for path in kernelwright.__path__)
    return [sys.executable, "-c", _RUN, roots, module, *arguments]


def is_python(argv: Sequence[str]) -> bool:
    """Whether a command is for the generator's Python."""
    return argv[0] == PYTHON


@functools.cache
def files_digest() -> str:
    """Return the sha256 over the contents of :data:`FILES`."""
    digest = hashlib.sha256()
    for pattern in FILES:
        folder, _, name = pattern.rpartition("/")
        root = resources.files(folder.replace("/", "."))
        matching = [one for one in root.iterdir() if Path(one.name).match(name) and not one.name.endswith("_test.py")]
        for one in sorted(matching, key=lambda file: file.name):
            digest.update(f"{folder}/{one.name}\0{hashlib.sha256(one.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()
