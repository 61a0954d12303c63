from __future__ import annotations

import json

import jinja2
import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.planning.render import header_path, render_kernel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.templates import read_template
from kernelwright.codegen.testing.null_backend import null_templates
from kernelwright.codegen.violations import SpecError

GFX942 = archs.load("gfx942")
KERNEL = expand_set("gemm:essential", GFX942).kernels[0]


def test_the_fixed_variables_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    null_templates(monkeypatch)
    (file,) = render_kernel(KERNEL, GFX942, "null")
    assert file.path == header_path(KERNEL) == f"gfx942/{KERNEL.name}.hpp"
    first, second = file.text.splitlines()
    assert first == f"// {KERNEL.name} gfx942 {KERNEL.identity} {KERNEL.symbol} {gemm_spec(KERNEL).dtype_a}"
    assert json.loads(second.removeprefix("#define SPEC ")) == KERNEL.canonical_json


def test_a_variable_that_nobody_defines_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    null_templates(monkeypatch, "{{ nobody }}")
    with pytest.raises(jinja2.UndefinedError, match="nobody"):
        render_kernel(KERNEL, GFX942, "null")


def test_a_template_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        read_template("kernelwright.codegen.planning", "templates/nothing.c.jinja")


def test_a_backend_that_the_operation_has_no_kernels_for_is_an_error() -> None:
    with pytest.raises(SpecError, match="no GEMM kernel is for the backend 'null'; allowed: cpu, ck_tile, cutlass"):
        render_kernel(KERNEL, GFX942, "null")


@pytest.mark.parametrize("name", archs.names())
def test_headers_only_instantiate(name: str) -> None:
    arch = archs.load(name)
    for kernel in expand_set("gemm:default", arch).kernels:
        text = render_kernel(kernel, arch, arch.backend)[0].text
        assert text.count("\n") <= 80 and text.endswith("\n")
        assert kernel.symbol in text and kernel.name in text and "{{" not in text


def test_templates_are_read_once() -> None:
    first, second = (read_template("kernelwright.codegen.planning", "templates/library.c.jinja") for _ in range(2))
    assert first is second
