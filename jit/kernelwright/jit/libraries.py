"""Linked libraries in the cache, looked up by their inputs before any compiler is needed."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelwright.codegen.actions import CompilePlan
from kernelwright.codegen.backends.registry import ToolchainChoice
from kernelwright.codegen.building.cache_folder import make_private, touch
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.store import close_to_others, flush, read_json
from kernelwright.codegen.packaging.provenance import canonical, generator_materials
from kernelwright.codegen.planning.describe import library_json
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.dispatch import KernelLibrary, KernelwrightError
from kernelwright.jit.toolchains import own_digest
from kernelwright.jit.trusted_cache import TrustedCache

_STAMPS = "toolchains.json"
_LOCK_S = 1800.0


def library_key(
    name: str,
    item: Selection,
    plan: CompilePlan,
    toolchains: Mapping[str, ToolchainChoice],
    given: Mapping[str, Path] | None,
) -> str:
    """sha256 over all inputs of a library; toolchains enter with their versions instead of their contents.

    So a machine without compilers finds libraries built by another one. ``given`` are folders of trees by name.
    """
    trees = sorted({tree for action in plan.all_actions for tree in action.trees})
    made_of = {
        "library": library_json(name, item, plan, toolchains),
        "sources": {tree: own_digest(tree, given) for tree in trees},
        "generator": generator_materials(),
    }
    return hashlib.sha256(canonical(made_of)).hexdigest()


@dataclass(frozen=True)
class LibraryCache(TrustedCache):
    """Folders ``<root>/libraries/<key>`` with library, manifest, costs, and the stamps of the toolchains.

    Unless the cache is ``shared``, raises UntrustedCacheError instead of loading a file that another user could
    replace.
    """

    def find(self, key: str, stamps: Mapping[str, str]) -> KernelLibrary | None:
        """A complete library; None if there is none, or if an installed toolchain is not the one it was built with."""
        folder = self.root / "libraries" / key
        self.check(folder)
        try:
            recorded = read_json(folder / _STAMPS)
            if recorded is None or any(recorded.get(tree, stamp) != stamp for tree, stamp in stamps.items()):
                return None
            touch(folder)
            return KernelLibrary.load(folder)
        except (OSError, ValueError, KernelwrightError):  # built again if compiling is allowed
            return None

    def make(self, key: str, stamps: Mapping[str, str], files: Callable[[], Mapping[str, bytes]]) -> KernelLibrary:
        """Write a library's files and load it; one that another process wrote first stays. UnusableCacheError."""
        with self.writable():
            return self._make(self.root / "libraries" / key, key, stamps, files)

    def _make(
        self, folder: Path, key: str, stamps: Mapping[str, str], files: Callable[[], Mapping[str, bytes]]
    ) -> KernelLibrary:
        if self.shared:
            folder.parent.mkdir(parents=True, exist_ok=True)
        else:
            make_private(self.root)
        with entry_lock(self.root / "locks" / f"library-{key}", _LOCK_S):
            cached = self.find(key, stamps)
            if cached is not None:
                return cached
            with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-", ignore_cleanup_errors=True) as made:
                staged = Path(made, "staged")
                staged.mkdir(mode=0o777 if self.shared else 0o700)
                for name, data in {**files(), _STAMPS: json.dumps(dict(stamps)).encode()}.items():
                    (staged / name).write_bytes(data)
                close_to_others(staged, self.shared)
                flush(staged)
                with suppress(FileNotFoundError):
                    os.rename(folder, Path(made, "old"))
                os.rename(staged, folder)
        self.check(folder)
        return KernelLibrary.load(folder)
