"""Code objects of the headers in known_bad and arithmetic, compiled as kernels are.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

from compiling import executor
from kernelwright.codegen.actions import RenderedFile
from kernelwright.codegen.operations.gemm import ck_tile
from kernelwright.codegen.toolchains.hip import HipToolchain

_FOLDERS = tuple(Path(__file__).with_name(name) for name in ("known_bad", "arithmetic"))
_MEMORY_MB = 1600


@cache
def code_object(name: str, arch: str, *flags: str) -> bytes:
    """The code object of ``<name>.hpp`` for an architecture; ``flags`` come behind the toolchain's.

    ActionError, with all output, if none comes.
    """
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
    return executor().run(sources, actions)["x.co"].read_bytes()


def assembled(text: str, arch: str) -> bytes:
    """The object file of assembly for an architecture. ActionError, with all output, if none comes."""
    command = HipToolchain.wheel().assemble("x.s", "x.o", arch)
    action = command.action("x.o", f"assembly for {arch}", ("x.s",), ("x.o",))
    return executor().run([RenderedFile("x.s", text)], [action])["x.o"].read_bytes()
