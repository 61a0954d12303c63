"""What tests compile with: the toolchains of the build, and a cache that all tests of this user share.

So a kernel is compiled once, whichever tests need it, and again only after a change to what it is made of.
``KERNELWRIGHT_TREES`` names a JSON file ``{tree: folder}`` (``trees`` of ``tests/tiers.build``), ``KERNELWRIGHT_CACHE``
another cache than ``~/.cache/kernelwright-tests/compiled``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.dispatch.testdata.kept import folder_for, own_folder

__all__ = ["cache_folder", "executor", "own_folder", "tree_roots"]


def executor(cache: Path | None = None, **options: Any) -> LocalExecutor:
    """An executor with the toolchains and the shared cache, or another; options are those of :class:`LocalExecutor`."""
    return LocalExecutor(tree_roots(), cache or cache_folder(), **{"memory_mb": 1 << 20, **options})


def tree_roots() -> dict[str, Path]:
    """The folders of the toolchains' trees."""
    trees = os.environ.get("KERNELWRIGHT_TREES")
    assert trees, "KERNELWRIGHT_TREES names no file of toolchain folders"
    return dict(read_tree_roots(Path(trees)))


def cache_folder() -> Path:
    """The cache of compiled kernels."""
    named = os.environ.get("KERNELWRIGHT_CACHE")
    return Path(named) if named else folder_for("compiled")
