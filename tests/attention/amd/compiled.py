"""Code objects of attention kernels, compiled as a build would compile them.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compiling import executor
from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.actions import RenderedFile
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention import ck_tile
from kernelwright.codegen.operations.attention.operation import ATTENTION
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec
from kernelwright.codegen.resources.ck_tile import read_report
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.templates import render_template
from kernelwright.codegen.toolchains.hip import HipToolchain

_MEMORY_MB = 1200


@dataclass(frozen=True)
class Compiled:
    """A kernel, its code object, the names that its template uses, and the report on its assembly."""

    kernel: Kernel
    image: bytes
    symbols: Mapping[str, object]
    report: Mapping[str, int]

    @property
    def spec(self) -> AttentionSpec:
        """The kernel's spec."""
        return attention_spec(self.kernel)

    @property
    def function(self) -> str:
        """The kernel's function; of several, what all their names begin with."""
        return str(self.symbols["function"])

    @property
    def arch(self) -> Arch:
        """The kernel's architecture."""
        return archs.load(self.kernel.arch)


def compiled(arch: str, fields: Mapping[str, Any]) -> Compiled:
    """The kernel of a partial spec. ActionError, with all output, if it does not compile; ReportError if its assembly
    lacks what the family must have."""
    kernel = parse_kernel({"op": "attention", **fields}, archs.load(arch))
    symbols = ck_tile.symbols(kernel)
    variables = {"name": kernel.name, "arch": arch, "symbol": kernel.symbol, "spec": kernel.spec}
    header = RenderedFile("k.hpp", render_template(ck_tile.template(kernel), {**symbols, **variables}))
    hip, target = HipToolchain.wheel(), archs.load(arch).target
    steps = (
        (hip.compile(header.path, "k.s", target, ("hip_common", *ck_tile.TREES), _MEMORY_MB), header.path, "k.s"),
        (hip.assemble("k.s", "k.o", target), "k.s", "k.o"),
        (hip.link("k.o", "k.co"), "k.o", "k.co"),
    )
    actions = [command.action(out, f"{kernel.name}: {out}", (source,), (out,)) for command, source, out in steps]
    made = executor().run((header,), actions)
    report = read_report(made["k.s"].read_bytes(), ATTENTION.expects(kernel, archs.load(arch)))
    return Compiled(kernel, made["k.co"].read_bytes(), symbols, report)
