"""The readable name of a convolution kernel: CK Tile's grammar, extended so that two specs never share a name."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping

from kernelwright.codegen.fields import Activation, Extent
from kernelwright.codegen.kernel import is_set
from kernelwright.codegen.operations.convolution.spec import Direction, GroupedConvSpec, Plane

_DIRECTIONS: Mapping[Direction, str] = {
    Direction.FORWARD: "fwd",
    Direction.BACKWARD_DATA: "bwd_data",
    Direction.BACKWARD_WEIGHT: "bwd_weight",
}
# Vectors that the name leaves out.
_USUAL_VECTORS = (4, 8, 8)
_MAX_LENGTH = 240
_DIGEST = 16


def kernel_name(spec: GroupedConvSpec) -> str:
    """A file name of at most 240 characters from [a-z A-Z 0-9 _], unique within an architecture; never parse it.

    ``grouped_conv_<direction>[_depthwise]_<dtype>_<layout>_<n>d_<pipeline>_<epilogue>_<scheduler>_<tile>_<wave>_ <warp
    tile>``, then one suffix for each remaining field that differs from its default. A longer name, which no legal
    kernel has, ends in a digest of the whole.
    """
    parts = [
        f"grouped_conv_{_DIRECTIONS[spec.direction]}{'_depthwise' * spec.depthwise}_{spec.dtype}_{spec.layout}",
        f"{spec.spatial_dims}d_{spec.pipeline}_{spec.epilogue}_{spec.scheduler}",
        f"{_extent(spec.tile)}_{_extent(spec.wave)}_{_extent(spec.warp_tile)}",
    ]
    vector = (spec.vector.a, spec.vector.b, spec.vector.c)
    if vector != _USUAL_VECTORS:
        parts.append("vec" + "_".join(map(str, vector)))
    parts += [suffix(spec) for field, suffix in _SUFFIXES.items() if is_set(spec, field)]
    if spec.fused:
        parts.append(_fused(spec))
    name = "_".join(parts)
    if len(name) <= _MAX_LENGTH:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: _MAX_LENGTH - _DIGEST - 1]}_{digest}"


def _fused(spec: GroupedConvSpec) -> str:
    words = ["bias"] * spec.bias + ["residual"] * spec.residual
    if spec.activation is not Activation.NONE:
        words.append(spec.activation.replace("_", ""))
    return "_".join(words)


# Suffixes of fields that differ from their defaults; the epilogue's are in _fused.
_SUFFIXES: Mapping[str, Callable[[GroupedConvSpec], str]] = {
    "image_tile": lambda spec: f"it{_plane(spec.image_tile)}",
    "filter": lambda spec: f"f{_plane(spec.filter)}",
    "stride": lambda spec: f"s{_plane(spec.stride)}",
    "padding": lambda spec: f"p{_plane(spec.padding)}",
    "images": lambda spec: f"nb{spec.images}",
    "subtile": lambda spec: f"sub{_plane(spec.subtile)}",
    "num_wave_groups": lambda spec: f"wg{spec.num_wave_groups}",
    "num_groups_to_merge": lambda spec: f"gm{spec.num_groups_to_merge}",
    "double_smem_buffer": lambda spec: "dsb",
    "two_stage": lambda spec: "2stage",
    "specialization": lambda spec: str(spec.specialization),
    "explicit_gemm": lambda spec: "explicit_gemm",
    "stream_k": lambda spec: f"streamk_{spec.stream_k}",
    "stream_k_persistent": lambda spec: "persistent",
    "split_image": lambda spec: "large_tensor",
    "pad": lambda spec: "pad" + "".join(axis.upper() for axis in "mnk" if getattr(spec.pad, axis)),
}


def _extent(extent: Extent) -> str:
    return f"{extent.m}x{extent.n}x{extent.k}"


def _plane(plane: Plane) -> str:
    return f"{plane.h}x{plane.w}"
