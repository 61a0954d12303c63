"""Grouped convolution as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.operations.convolution.arch_section import conv_features, conv_section
from kernelwright.codegen.operations.convolution.complete import complete
from kernelwright.codegen.operations.convolution.estimate import compile_seconds
from kernelwright.codegen.operations.convolution.expand import expand_conv
from kernelwright.codegen.operations.convolution.name import kernel_name
from kernelwright.codegen.operations.convolution.sets import ConvSets
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec, conv_spec
from kernelwright.codegen.operations.convolution.time_model.model import ConvTimeModel

_PACKAGE = "kernelwright.codegen.operations.convolution"
# Templates by backend and suffix.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "cpu": {".hpp": "templates/cpu/convolution.hpp.jinja"},
    "cutlass": {".hpp": "templates/cutlass/convolution.hpp.jinja"},
    "ck_tile": {".hpp": "templates/ck_tile/convolution.hpp.jinja", ".c": "templates/ck_tile/convolution.c.jinja"},
}
# Suffixes of symbols of device functions that run besides the convolution itself.
_HELPERS = ("_sum", "_conv_helper_")


def _features(spec: GroupedConvSpec, arch: Arch) -> tuple[str, ...]:
    return conv_features(spec.dtype, spec.warp_tile.k, arch)


def _expects(kernel: Kernel, arch: Arch) -> Expectation:
    """Expect one device function, with matrix instructions unless depthwise; those that add up slices run beside it."""
    return Expectation(1, not conv_spec(kernel).depthwise, _HELPERS)


CONVOLUTION = FolderOperation(
    name="convolution",
    title="convolution",
    package=_PACKAGE,
    spec_type=GroupedConvSpec,
    templates=_TEMPLATES,
    sets=ConvSets(),
    section=conv_section,
    complete=complete,
    name_of=kernel_name,
    expand=expand_conv,
    features=_features,
    seconds=compile_seconds,
    expects=_expects,
    properties=("spatial_dims",),
    time_model=ConvTimeModel(),
    joins=True,
)
"""The operation as the registry lists it."""
