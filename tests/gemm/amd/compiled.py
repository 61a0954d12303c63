"""Code objects of the headers in known_bad and arithmetic, compiled as kernels are.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

from kernelwright.codegen.actions import RenderedFile
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.operations.gemm import ck_tile
from kernelwright.codegen.toolchains.hip import HipToolchain

TREES = os.environ.get("KERNELWRIGHT_TREES")
_FOLDERS = tuple(Path(__file__).with_name(name) for name in ("known_bad", "arithmetic"))
_MEMORY_MB = 1600


@cache
def code_object(name: str, arch: str, *flags: str) -> bytes:
    """The code object of ``<name>.hpp`` for an architecture; ``flags`` come behind the toolchain's.

    ActionError, with all output, if none comes.
    """
    assert TREES, "KERNELWRIGHT_TREES names no file of toolchain folders"
    hip = HipToolchain.wheel()
    (folder,) = (folder for folder in _FOLDERS if (folder / f"{name}.hpp").exists())
    sources = tuple(RenderedFile(path.name, path.read_text()) for path in sorted(folder.glob("*.hpp")))
    compile_ = hip.compile(f"{name}.hpp", "x.s", arch, ("hip_common", *ck_tile.TREES), _MEMORY_MB)
    steps = (
        (replace(compile_, argv=(*compile_.argv, *flags)), tuple(source.path for source in sources), "x.s"),
        (hip.assemble("x.s", "x.o", arch), ("x.s",), "x.o"),
        (hip.link("x.o", "x.co"), ("x.o",), "x.co"),
    )
    actions = [command.action(out, f"{name} for {arch}: {out}", inputs, (out,)) for command, inputs, out in steps]
    executor = LocalExecutor(read_tree_roots(Path(TREES)), cache_folder(), memory_mb=1 << 20)
    return executor.run(sources, actions)["x.co"].read_bytes()


def assembled(text: str, arch: str) -> bytes:
    """The object file of assembly for an architecture. ActionError, with all output, if none comes."""
    assert TREES, "KERNELWRIGHT_TREES names no file of toolchain folders"
    command = HipToolchain.wheel().assemble("x.s", "x.o", arch)
    action = command.action("x.o", f"assembly for {arch}", ("x.s",), ("x.o",))
    executor = LocalExecutor(read_tree_roots(Path(TREES)), cache_folder(), memory_mb=1 << 20)
    return executor.run([RenderedFile("x.s", text)], [action])["x.o"].read_bytes()


def cache_folder() -> Path:
    """A developer's cache of compiled kernels, or a folder for this process."""
    return Path(os.environ.get("KERNELWRIGHT_CACHE") or _own_folder().name)


@cache
def _own_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kernelwright-")
