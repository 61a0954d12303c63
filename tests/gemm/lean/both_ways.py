"""A kernel compiled with the rewritten headers of CK Tile or CUTLASS, and with the headers as they are.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from compiling import executor
from kernelwright.arch import load
from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.compile_plan import kernel_actions

DEFAULTS = {"ck_tile": ("hip", "wheel"), "cutlass": ("cuda", "clang")}
"""The kind of each backend's toolchain, and the choice that compiles with rewritten headers; the other is "stock"."""


@dataclass(frozen=True)
class Compiled:
    """Device assembly (AMD) or object (NVIDIA), and the headers that the compiler read, by their sandbox paths."""

    output: bytes
    headers: frozenset[str]


def first_action(kernel: Kernel, stock: bool) -> tuple[tuple[RenderedFile, ...], Action]:
    """The command that compiles a kernel's header, and the files that it needs."""
    arch = load(kernel.arch)
    kind, default = DEFAULTS[arch.backend]
    choice = "stock" if stock else default
    plan = kernel_actions(kernel, arch, backend_for(arch, {**DEFAULT_TOOLCHAINS, kind: choice}))
    return plan.files, plan.actions[0]


def output(kernel: Kernel, stock: bool) -> bytes:
    """What a build's command makes of a kernel: found in the cache of tests if it ran before."""
    files, step = first_action(kernel, stock)
    return _run(files, step)[step.outputs[0]].read_bytes()


def listed(kernel: Kernel, stock: bool) -> Compiled:
    """The same with the headers that the compiler read; of the two passes for NVIDIA the last one lists them."""
    files, step = first_action(kernel, stock)
    # The driver has no option for this where it compiles for a device alone.
    options = ("-dependency-file", "headers.d", "-sys-header-deps", "-MT", "x")
    argv = (*step.argv, *(word for option in options for word in ("-Xclang", option)))
    made = _run(files, replace(step, argv=argv, outputs=(*step.outputs, "headers.d")))
    headers = made["headers.d"].read_text().replace("\\\n", " ").split()
    return Compiled(made[step.outputs[0]].read_bytes(), frozenset(headers))


def _run(files: Sequence[RenderedFile], step: Action) -> dict[str, Path]:
    return executor().run(files, [step])


def difference(kernel: Kernel) -> int:
    """How many lines of its assembly or object differ, 0 if it is the same to the byte."""
    lean, stock = (output(kernel, stock).split(b"\n") for stock in (False, True))
    return sum(a != b for a, b in zip(lean, stock, strict=False)) + abs(len(lean) - len(stock))
