"""GEMM as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, flat_names, flat_values
from kernelwright.codegen.operation import BackendPart, Expectation
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.complete import SHORTHANDS, complete
from kernelwright.codegen.operations.gemm.estimate import compile_seconds
from kernelwright.codegen.operations.gemm.expand import expand_gemm
from kernelwright.codegen.operations.gemm.generator import GemmGenerator
from kernelwright.codegen.operations.gemm.name import kernel_name
from kernelwright.codegen.operations.gemm.sets import GemmSets
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.templates import read_template
from kernelwright.codegen.violations import Rule, SpecError, Violation

_PACKAGE = "kernelwright.codegen.operations.gemm"
# Backend → its templates by suffix.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "cpu": {".hpp": "templates/cpu/gemm.hpp.jinja"},
    "ck_tile": {".hpp": "templates/ck_tile/gemm.hpp.jinja", ".c": "templates/ck_tile/gemm.c.jinja"},
    "cutlass": {".hpp": "templates/cutlass/gemm.hpp.jinja"},
}
# Endings and parts of symbols of device functions beside the GEMM itself.
_HELPERS = ("_sum", "kernelwright_prepare")


class Gemm:
    """The operation; :data:`GEMM` is its one instance."""

    name = "gemm"
    spec_type = GemmSpec
    shorthands = SHORTHANDS
    sets = GemmSets()
    generator = GemmGenerator()
    attributes = (*flat_names(GemmSpec), *SHORTHANDS, "variant")
    backends = tuple(_TEMPLATES)

    def check_arch(self, arch: Arch) -> None:
        """Read section ``operations.gemm``; ArchError if it is malformed."""
        gemm_section(arch)

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
        """See :func:`kernelwright.codegen.operations.gemm.complete.complete`."""
        return complete(raw, arch)

    def name_of(self, spec: GemmSpec) -> str:
        """See :func:`kernelwright.codegen.operations.gemm.name.kernel_name`."""
        return kernel_name(spec)

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """The rules that hold for every GEMM, then those of a backend."""
        return _rules(backend)

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        """See :func:`kernelwright.codegen.operations.gemm.expand.expand_gemm`."""
        return expand_gemm(config, arch)

    def view(self, spec: GemmSpec) -> dict[str, Any]:
        """Every field (``tile.m`` as ``tile_m``), ``dtype`` (the type of A), and the variant."""
        shorthands = {name: str(getattr(spec, short.field)) for name, short in SHORTHANDS.items()}
        return {**flat_values(spec), **shorthands, "variant": spec.variant}

    def variant(self, spec: GemmSpec) -> str:
        """One of :data:`kernelwright.codegen.operations.gemm.spec.VARIANTS`."""
        return spec.variant

    def features(self, spec: GemmSpec, arch: Arch) -> tuple[str, ...]:
        """What a device must have beyond the architecture, sorted."""
        return gemm_section(arch).features(spec.dtype_key, spec.warp_tile.k)

    def context(self, kernel: Kernel, backend: str) -> Mapping[str, object]:
        """C++ symbols for the templates of a backend."""
        return cast("Mapping[str, object]", _backend_module(backend).context(kernel))

    def on_backend(self, backend: str) -> BackendPart:
        """Templates and launcher sources."""
        return _on_backend(backend)

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        """See :func:`kernelwright.codegen.operations.gemm.estimate.compile_seconds`."""
        return compile_seconds(kernel, arch)

    def expects(self, kernel: Kernel) -> Expectation:
        """One device function with matrix instructions; those that add slices up or fill tables run beside it."""
        return Expectation(device_kernels=1, matrix_instructions=True, helpers=_HELPERS)


def _backend_module(backend: str) -> Any:
    if backend not in _TEMPLATES:
        raise SpecError(f"no GEMM kernel is for the backend {backend!r}; allowed: {', '.join(_TEMPLATES)}")
    return importlib.import_module(f"{_PACKAGE}.{backend}")


@functools.cache
def _on_backend(backend: str) -> BackendPart:
    module = _backend_module(backend)
    templates = {suffix: read_template(_PACKAGE, path) for suffix, path in _TEMPLATES[backend].items()}
    joins = backend == "ck_tile"
    return BackendPart(templates, module.TREES, ("gemm",), module.SOURCES, joins)


@functools.cache
def _rules(backend: str) -> tuple[Rule, ...]:
    _backend_module(backend)
    common, own = (importlib.import_module(f"{_PACKAGE}.constraints.{name}") for name in ("common", backend))
    return (*common.RULES, *own.RULES)


GEMM = Gemm()
"""The operation in the registry."""
