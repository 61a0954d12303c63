"""Grouped convolution as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, flat_names, flat_values
from kernelwright.codegen.operation import BackendPart, Expectation
from kernelwright.codegen.operations.convolution.arch_section import conv_features, conv_section
from kernelwright.codegen.operations.convolution.complete import SHORTHANDS, complete
from kernelwright.codegen.operations.convolution.estimate import compile_seconds
from kernelwright.codegen.operations.convolution.expand import expand_conv
from kernelwright.codegen.operations.convolution.name import kernel_name
from kernelwright.codegen.operations.convolution.sets import ConvSets
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec, conv_spec
from kernelwright.codegen.templates import read_template
from kernelwright.codegen.violations import Rule, SpecError, Violation

_PACKAGE = "kernelwright.codegen.operations.convolution"
# Backend → its templates by suffix.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "cpu": {".hpp": "templates/cpu/convolution.hpp.jinja"},
    "ck_tile": {".hpp": "templates/ck_tile/convolution.hpp.jinja", ".c": "templates/ck_tile/convolution.c.jinja"},
}
# Endings of symbols of device functions beside the convolution itself.
_HELPERS = ("_sum",)


class Convolution:
    """The operation; :data:`CONVOLUTION` is its one instance."""

    name = "convolution"
    spec_type = GroupedConvSpec
    shorthands = SHORTHANDS
    sets = ConvSets()
    generator = None
    attributes = (*flat_names(GroupedConvSpec), "spatial_dims", "variant")
    backends = tuple(_TEMPLATES)

    def check_arch(self, arch: Arch) -> None:
        """Read section ``operations.convolution``; ArchError if it is malformed."""
        conv_section(arch)

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
        """See :func:`kernelwright.codegen.operations.convolution.complete.complete`."""
        return complete(raw, arch)

    def name_of(self, spec: GroupedConvSpec) -> str:
        """See :func:`kernelwright.codegen.operations.convolution.name.kernel_name`."""
        return kernel_name(spec)

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """The rules that hold for every convolution, then those of a backend."""
        return _rules(backend)

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        """See :func:`kernelwright.codegen.operations.convolution.expand.expand_conv`."""
        return expand_conv(config, arch)

    def view(self, spec: GroupedConvSpec) -> dict[str, Any]:
        """Every field (``tile.m`` as ``tile_m``), the number of spatial dimensions, and the variant."""
        return {**flat_values(spec), "spatial_dims": spec.spatial_dims, "variant": spec.variant}

    def variant(self, spec: GroupedConvSpec) -> str:
        """One of :data:`kernelwright.codegen.operations.convolution.spec.VARIANTS`."""
        return spec.variant

    def features(self, spec: GroupedConvSpec, arch: Arch) -> tuple[str, ...]:
        """What a device must have beyond the architecture, sorted."""
        return conv_features(spec.dtype, spec.warp_tile.k, arch)

    def context(self, kernel: Kernel, backend: str) -> Mapping[str, object]:
        """C++ symbols for the templates of a backend."""
        return cast("Mapping[str, object]", _backend_module(backend).context(kernel))

    def on_backend(self, backend: str) -> BackendPart:
        """Templates and launcher sources."""
        return _on_backend(backend)

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        """See :func:`kernelwright.codegen.operations.convolution.estimate.compile_seconds`."""
        return compile_seconds(kernel, arch)

    def expects(self, kernel: Kernel) -> Expectation:
        """One device function, with matrix instructions unless depthwise; what adds slices up runs beside it."""
        return Expectation(1, not conv_spec(kernel).depthwise, _HELPERS)


def _backend_module(backend: str) -> Any:
    if backend not in _TEMPLATES:
        raise SpecError(f"no convolution kernel is for the backend {backend!r}; allowed: {', '.join(_TEMPLATES)}")
    return importlib.import_module(f"{_PACKAGE}.{backend}")


@functools.cache
def _on_backend(backend: str) -> BackendPart:
    module = _backend_module(backend)
    templates = {suffix: read_template(_PACKAGE, path) for suffix, path in _TEMPLATES[backend].items()}
    joins = backend == "ck_tile"
    return BackendPart(templates, module.TREES, ("convolution",), module.SOURCES, joins)


@functools.cache
def _rules(backend: str) -> tuple[Rule, ...]:
    _backend_module(backend)
    common, own = (importlib.import_module(f"{_PACKAGE}.constraints.{name}") for name in ("common", backend))
    return (*common.RULES, *own.RULES)


CONVOLUTION = Convolution()
"""The operation in the registry."""
