"""A backend that needs no compiler: its objects are copies of headers."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, KernelActions
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import BackendPart, operation
from kernelwright.codegen.templates import Template
from kernelwright.codegen.toolchains.host import HostToolchain

NULL_TEMPLATE = (
    "// {{ name }} {{ arch }} {{ identity }} {{ symbol }} {{ dtype_a }}\n#define SPEC {{ spec_json_literal }}\n"
)
"""The template that :class:`NullBackend` compiles."""

_COPY = "import sys; open(sys.argv[1], 'wb').write(b''.join(open(p, 'rb').read() for p in sys.argv[2:]))"


@dataclass(frozen=True)
class NullToolchain:
    """A toolchain that consists of an identity only."""

    identity: str = "null 1.0"


@dataclass(frozen=True)
class NullBackend:
    """Compiles by copying and links by concatenating; every action really runs."""

    name: str = "null"

    @property
    def host(self) -> HostToolchain:
        """The pinned toolchain: nothing else compiles C."""
        return HostToolchain.zig()

    def kernel_actions(self, kernel: Kernel, arch: Arch, header: str) -> KernelActions:
        """Return one action."""
        output = header.removesuffix(".hpp") + ".o"
        return KernelActions((), (copy_action([header], output),), (output,))

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Return one action."""
        return copy_action(objects, output)

    def join(self, kernels: Sequence[Kernel], arch: Arch, headers: Sequence[str]) -> None:
        """Return None: no two kernels are compiled together."""

    def library_actions(
        self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Return one action."""
        return (copy_action([table, *objects], library),)


def copy_action(inputs: Sequence[str], output: str, **rest: object) -> Action:
    """Return an action that concatenates its inputs."""
    argv = (sys.executable, "-I", "-S", "-c", _COPY, output, *inputs)  # a third of the startup time
    return Action(f"copy {output}", f"Copy to {output}", argv, tuple(inputs), (output,), **rest)  # type: ignore[arg-type]


def null_templates(monkeypatch: pytest.MonkeyPatch, text: str = NULL_TEMPLATE) -> None:
    """Give GEMM kernels for :class:`NullBackend`."""
    gemm: Any = operation("gemm")
    on_backend, context = gemm.on_backend, gemm.context

    def with_null_part(backend: str) -> BackendPart:
        part: BackendPart = BackendPart({".hpp": Template("null", text)}) if backend == "null" else on_backend(backend)
        return part

    def with_null_context(kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        spec: Any = kernel.spec
        return {"dtype_a": spec.dtype_a} if backend == "null" else context(kernel, arch, backend)

    monkeypatch.setattr(gemm, "on_backend", with_null_part)
    monkeypatch.setattr(gemm, "context", with_null_context)
