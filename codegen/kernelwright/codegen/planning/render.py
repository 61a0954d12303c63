"""Rendering of the files that a kernel is compiled from, byte for byte the same on every machine."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.actions import RenderedFile
from kernelwright.codegen.c_text import string
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.templates import render_template

HEADER = ".hpp"


def header_path(kernel: Kernel) -> str:
    """Return the path of a kernel's header, relative to the working directory of a build."""
    return f"{kernel.arch}/{kernel.name}{HEADER}"


def render_kernel(kernel: Kernel, arch: Arch, backend: str) -> tuple[RenderedFile, ...]:
    """Return the header that instantiates a kernel, then the other files that its operation has templates for.

    Templates see the result of the operation's ``context``, and name, arch, identity, symbol, spec_json_literal (a C
    string literal), spec and arch_model. An undefined variable is an error (jinja2.UndefinedError).
    """
    own = operation(kernel.spec.op)
    variables = {
        **own.context(kernel, arch, backend),
        "name": kernel.name,
        "arch": kernel.arch,
        "identity": kernel.identity,
        "symbol": kernel.symbol,
        "spec_json_literal": string(kernel.canonical_json),
        "spec": kernel.spec,
        "arch_model": arch,
    }
    stem = header_path(kernel).removesuffix(HEADER)
    templates = own.on_backend(backend).templates
    suffixes = sorted(templates, key=lambda suffix: (suffix != HEADER, suffix))
    return tuple(RenderedFile(f"{stem}{suffix}", render_template(templates[suffix], variables)) for suffix in suffixes)
