"""Fused attention as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.operations.attention import ck_tile, cutlass
from kernelwright.codegen.operations.attention.arch_section import attention_features, attention_section
from kernelwright.codegen.operations.attention.complete import SHORTHANDS, complete
from kernelwright.codegen.operations.attention.estimate import compile_seconds
from kernelwright.codegen.operations.attention.expand import expand_attention
from kernelwright.codegen.operations.attention.kinds import Family, Pipeline
from kernelwright.codegen.operations.attention.name import kernel_name
from kernelwright.codegen.operations.attention.sets import AttentionSets
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec
from kernelwright.codegen.operations.attention.time_model.model import AttentionTimeModel

# Templates by backend and suffix.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "ck_tile": {".hpp": "templates/ck_tile/attention.hpp.jinja", ".c": "templates/ck_tile/attention.c.jinja"},
    "cutlass": {".hpp": "templates/cutlass/attention.hpp.jinja"},
    "cpu": {".hpp": "templates/cpu/attention.hpp.jinja"},
}
# Kernels of CK Tile, head dimensions 64 and 128 of every family, took 290 to 570 MB with the rewritten headers; larger
# head dimensions were not measured.
_COMPILE_MB = {"ck_tile": 768}

_WITHOUT_MATRICES = frozenset(
    {Family.FWD_SPLITKV_COMBINE, Family.FWD_APPENDKV, Family.BWD_DOT_DO_O, Family.BWD_CONVERT_DQ}
)
_HELPERS = (*ck_tile.HELPERS, *cutlass.HELPERS)


def _features(spec: AttentionSpec, arch: Arch) -> tuple[str, ...]:
    return attention_features(spec.dtype, spec.warp_tile.k0, arch)


def _expects(kernel: Kernel, arch: Arch) -> Expectation:
    """Expect matrix instructions in families that multiply matrices; a combine kernel has several functions."""
    spec = attention_spec(kernel)
    return Expectation(_device_functions(spec, arch.backend), spec.family not in _WITHOUT_MATRICES, _HELPERS)


def _device_functions(spec: AttentionSpec, backend: str) -> int:
    if backend == "ck_tile" and spec.family is Family.FWD_SPLITKV_COMBINE:
        return len(ck_tile.splits_log2(spec))
    if backend == "cutlass" and spec.family is Family.BWD_DQ_DK_DV and spec.pipeline is Pipeline.BWD:
        return 2  # dK and dV, then dQ
    return 1


ATTENTION = FolderOperation(
    name="attention",
    title="attention",
    package="kernelwright.codegen.operations.attention",
    spec_type=AttentionSpec,
    templates=_TEMPLATES,
    sets=AttentionSets(),
    section=attention_section,
    complete=complete,
    name_of=kernel_name,
    expand=expand_attention,
    features=_features,
    seconds=compile_seconds,
    expects=_expects,
    shorthands=SHORTHANDS,
    time_model=AttentionTimeModel(),
    compile_mb=_COMPILE_MB,
)
"""The operation as the registry lists it."""
