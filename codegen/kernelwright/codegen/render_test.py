from __future__ import annotations

import json
from collections.abc import Mapping

import jinja2
import pytest

from kernelwright import arch as archs
from kernelwright.codegen import render
from kernelwright.codegen.backends import DEFAULT_TOOLCHAINS, backend_for
from kernelwright.codegen.render import header_path, render_kernel, render_template
from kernelwright.codegen.rulesets import expand_rule_set
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.testing import NullBackend, null_templates

GFX942 = archs.load("gfx942")
KERNEL = expand_rule_set("essential", GFX942)[0]


def test_the_fixed_variables_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    null_templates(monkeypatch)
    file = render_kernel(KERNEL, GFX942, NullBackend())
    assert file.path == header_path(KERNEL) == f"gfx942/{KERNEL.name}.hpp"
    first, second = file.text.splitlines()
    assert first == f"// {KERNEL.name} gfx942 {KERNEL.identity} {KERNEL.symbol} {KERNEL.spec.dtype_a}"
    assert json.loads(second.removeprefix("#define SPEC ")) == KERNEL.canonical_json


def test_a_variable_that_nobody_defines_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(NullBackend):
        def context(self, kernel: Kernel) -> Mapping[str, object]:
            return {}

    null_templates(monkeypatch)
    with pytest.raises(jinja2.UndefinedError, match="dtype_a"):
        render_kernel(KERNEL, GFX942, Forgetful())


def test_a_template_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(jinja2.TemplateNotFound):
        render_template("nothing/gemm.hpp.jinja", {})


@pytest.mark.parametrize("name", archs.names())
def test_headers_only_instantiate(name: str) -> None:
    arch = archs.load(name)
    backend = backend_for(arch, DEFAULT_TOOLCHAINS)
    for kernel in expand_rule_set("default", arch):
        text = render_kernel(kernel, arch, backend).text
        assert text.count("\n") <= 80 and text.endswith("\n")
        assert kernel.symbol in text and kernel.name in text and "{{" not in text


def test_environments_are_shared() -> None:
    assert render._environment() is render._environment()
