"""Rendering: a kernel's header from its backend's template, byte for byte the same wherever it is done."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Mapping

import jinja2

from kernelwright.arch import Arch
from kernelwright.codegen.backends.base import Backend
from kernelwright.codegen.plan import RenderedFile
from kernelwright.codegen.spec import Kernel


def header_path(kernel: Kernel) -> str:
    """Where a kernel's header goes, relative to the working directory of a build."""
    return f"{kernel.arch}/{kernel.name}.hpp"


def render_kernel(kernel: Kernel, arch: Arch, backend: Backend) -> RenderedFile:
    """The header that instantiates a kernel.

    The template sees ``backend.context(kernel)`` and name, arch, identity, symbol, spec_json_literal (a C string
    literal), spec and arch_model. A variable that nobody defines is an error (jinja2.UndefinedError).
    """
    fixed = {
        "name": kernel.name,
        "arch": kernel.arch,
        "identity": kernel.identity,
        "symbol": kernel.symbol,
        "spec_json_literal": json.dumps(kernel.canonical_json),
        "spec": kernel.spec,
        "arch_model": arch,
    }
    text = render_template(f"{backend.name}/{kernel.spec.op}.hpp.jinja", {**backend.context(kernel), **fixed})
    return RenderedFile(header_path(kernel), text)


def render_template(name: str, variables: Mapping[str, object]) -> str:
    """The text of ``templates/<name>`` with these variables."""
    return _environment().get_template(name).render(variables)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FunctionLoader(_read_template),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )


def _read_template(name: str) -> str | None:
    resource = importlib.resources.files("kernelwright.codegen").joinpath("templates", *name.split("/"))
    return resource.read_text("utf-8") if resource.is_file() else None
