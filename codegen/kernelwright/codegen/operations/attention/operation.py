"""Fused attention as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator, Mapping
from typing import Any, cast

from kernelwright.arch import Arch, load
from kernelwright.codegen.kernel import Kernel, flat_names, flat_values
from kernelwright.codegen.operation import BackendPart, Expectation
from kernelwright.codegen.operations.attention import ck_tile, cutlass
from kernelwright.codegen.operations.attention.arch_section import attention_features, attention_section
from kernelwright.codegen.operations.attention.complete import SHORTHANDS, complete
from kernelwright.codegen.operations.attention.constraints.rules import rules_of
from kernelwright.codegen.operations.attention.estimate import compile_seconds
from kernelwright.codegen.operations.attention.expand import expand_attention
from kernelwright.codegen.operations.attention.kinds import Family, Pipeline
from kernelwright.codegen.operations.attention.name import kernel_name
from kernelwright.codegen.operations.attention.sets import AttentionSets
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec
from kernelwright.codegen.templates import read_template
from kernelwright.codegen.violations import Rule, SpecError, Violation

_PACKAGE = "kernelwright.codegen.operations.attention"
_BUILT = ("cpu", "ck_tile", "cutlass")
# Kernels of CK Tile, head dimensions 64 and 128 of every family, took 290 to 570 MB with the rewritten headers; larger
# head dimensions were not measured.
_COMPILE_MB = {"ck_tile": 768}

_WITHOUT_MATRICES = frozenset(
    {Family.FWD_SPLITKV_COMBINE, Family.FWD_APPENDKV, Family.BWD_DOT_DO_O, Family.BWD_CONVERT_DQ}
)


class Attention:
    """The operation; :data:`ATTENTION` is its one instance."""

    name = "attention"
    spec_type = AttentionSpec
    shorthands = SHORTHANDS
    sets = AttentionSets()
    backends = ("ck_tile", "cutlass", "cpu")  # that it has specs and rules for
    generator = None
    time_model = None
    attributes = (*flat_names(AttentionSpec), *SHORTHANDS, "variant")

    def check_arch(self, arch: Arch) -> None:
        """Read section ``operations.attention``; ArchError if it is malformed."""
        attention_section(arch)

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
        """See :func:`kernelwright.codegen.operations.attention.complete.complete`."""
        return complete(raw, arch)

    def name_of(self, spec: AttentionSpec) -> str:
        """See :func:`kernelwright.codegen.operations.attention.name.kernel_name`."""
        return kernel_name(spec)

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """The rules that hold for every attention kernel, then those of a backend."""
        return rules_of(backend)

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        """See :func:`kernelwright.codegen.operations.attention.expand.expand_attention`."""
        return expand_attention(config, arch)

    def view(self, spec: AttentionSpec) -> dict[str, Any]:
        """Every field (``tile.m0`` as ``tile_m0``), ``hdim`` (that of Q), and the family as the variant."""
        shorthands = {name: getattr(spec, short.field) for name, short in SHORTHANDS.items()}
        return {**flat_values(spec), **shorthands, "variant": str(spec.family)}

    def variant(self, spec: AttentionSpec) -> str:
        """The family."""
        return str(spec.family)

    def features(self, spec: AttentionSpec, arch: Arch) -> tuple[str, ...]:
        """What a device must have beyond the architecture, sorted."""
        return attention_features(spec.dtype, spec.warp_tile.k0, arch)

    def context(self, kernel: Kernel, backend: str) -> Mapping[str, object]:
        """C++ symbols for the templates of a backend."""
        return cast("Mapping[str, object]", _backend_module(backend).context(kernel))

    def on_backend(self, backend: str) -> BackendPart:
        """Templates and launcher sources; SpecError for a backend that has no launcher so far."""
        return _on_backend(backend)

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        """See :func:`kernelwright.codegen.operations.attention.estimate.compile_seconds`."""
        return compile_seconds(kernel, arch)

    def expects(self, kernel: Kernel) -> Expectation:
        """Matrix instructions in families that multiply matrices; a combine kernel has several functions."""
        spec = attention_spec(kernel)
        helpers = (*ck_tile.HELPERS, *cutlass.HELPERS)
        return Expectation(_device_functions(spec, kernel.arch), spec.family not in _WITHOUT_MATRICES, helpers)


def _device_functions(spec: AttentionSpec, arch: str) -> int:
    backend = load(arch).backend
    if backend == "ck_tile" and spec.family is Family.FWD_SPLITKV_COMBINE:
        return len(ck_tile.splits_log2(spec))
    if backend == "cutlass" and spec.family is Family.BWD_DQ_DK_DV and spec.pipeline is Pipeline.BWD:
        return 2  # dK and dV, then dQ
    return 1


def _backend_module(backend: str) -> Any:
    if backend not in _BUILT:
        why = "no library has a launcher for it"
        raise SpecError(f"no attention kernel is built for the backend {backend!r} so far: {why}")
    return importlib.import_module(f"{_PACKAGE}.{backend}")


@functools.cache
def _on_backend(backend: str) -> BackendPart:
    module = _backend_module(backend)
    templates = {suffix: read_template(_PACKAGE, path) for suffix, path in module.TEMPLATES.items()}
    return BackendPart(
        templates,
        trees=module.TREES,
        launcher_trees=("attention",),
        sources=module.SOURCES,
        compile_mb=_COMPILE_MB.get(backend),
    )


ATTENTION = Attention()
"""The operation in the registry."""
