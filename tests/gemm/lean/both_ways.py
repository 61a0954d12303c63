"""A kernel's assembly with the rewritten headers of CK Tile and with the headers as they are.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gemm.amd import compiled
from kernelwright.arch import load
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.compile_plan import kernel_actions


@dataclass(frozen=True)
class Compiled:
    """Device assembly, and the headers that the compiler read for it, by their paths in its sandbox."""

    assembly: bytes
    headers: frozenset[str]


def compile_kernel(kernel: Kernel, toolchain: str) -> Compiled:
    """What the HIP toolchain ``"wheel"`` or ``"stock"`` makes of a kernel."""
    assert compiled.TREES, "KERNELWRIGHT_TREES names no file of toolchain folders"
    arch = load(kernel.arch)
    plan = kernel_actions(kernel, arch, backend_for(arch, {**DEFAULT_TOOLCHAINS, "hip": toolchain}))
    step = plan.actions[0]
    (assembly,) = step.outputs
    # The driver has no option for this where it compiles for a device alone.
    options = ("-dependency-file", "headers.d", "-sys-header-deps", "-MT", "x")
    argv = (*step.argv, *(word for option in options for word in ("-Xclang", option)))
    listed = replace(step, argv=argv, outputs=(assembly, "headers.d"))
    made = LocalExecutor(read_tree_roots(compiled.TREES), compiled.cache_folder()).run(plan.files, [listed])
    headers = made["headers.d"].read_text().replace("\\\n", " ").split()
    return Compiled(made[assembly].read_bytes(), frozenset(headers))


def difference(kernel: Kernel) -> int:
    """How many lines of its assembly differ, 0 if it is the same to the byte."""
    lean, stock = (compile_kernel(kernel, toolchain).assembly.split(b"\n") for toolchain in ("wheel", "stock"))
    return sum(a != b for a, b in zip(lean, stock, strict=False)) + abs(len(lean) - len(stock))
