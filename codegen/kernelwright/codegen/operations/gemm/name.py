"""The readable name of a kernel: CK Tile's grammar, extended so that two specs never share a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kernelwright.codegen.kernel import is_set
from kernelwright.codegen.operations.gemm.spec import Extent, GemmSpec, default_acc_dtype, default_output_dtype


def kernel_name(spec: GemmSpec) -> str:
    """A file name of at most 240 characters from [a-z A-Z 0-9 _], unique within an architecture; never parse it.

    ``gemm_<dtype of A>_<layout>_<pipeline>_<epilogue>_<scheduler>_<pad m>_<pad n>_<pad k>_<persistent>_<tile>_<wave>_
    <warp tile>``, then one suffix for each remaining field that differs from what A's dtype implies.
    """
    pad = spec.pad
    name = (
        f"gemm_{spec.dtype_a}_{spec.layout}_{spec.pipeline}_{spec.epilogue}_{spec.scheduler}"
        f"_{pad.m}_{pad.n}_{pad.k}_{spec.persistent}_{_extent(spec.tile)}_{_extent(spec.wave)}_{_extent(spec.warp_tile)}"
    )
    if spec.dtype_b != spec.dtype_a:
        name += f"_b{spec.dtype_b}"
    if spec.dtype_c != default_output_dtype(spec.dtype_a):
        name += f"_c{spec.dtype_c}"
    if spec.dtype_acc != default_acc_dtype(spec.dtype_a):
        name += f"_acc{spec.dtype_acc}"
    return name + "".join(suffix(spec) for field, suffix in _SUFFIXES.items() if is_set(spec, field)) + _variant(spec)


# Suffixes of fields that differ from their defaults; those in _variant depend on more than their own field.
_SUFFIXES: Mapping[str, Callable[[GemmSpec], str]] = {
    "preshuffle": lambda spec: "_preshuffle",
    "cluster": lambda spec: f"_cluster{_extent(spec.cluster)}",
    "num_wave_groups": lambda spec: f"_wg{spec.num_wave_groups}",
    "k_block_per_cu": lambda spec: f"_kbpc{spec.k_block_per_cu}",
    "split_k": lambda spec: "_splitk",
    "stream_k": lambda spec: f"_streamk_{spec.stream_k}",
}


def _variant(spec: GemmSpec) -> str:
    name = ""
    if spec.fused or is_set(spec, "d_op"):
        activation = "".join(part.capitalize() for part in spec.activation.split("_"))
        name += f"_multid_{spec.d_op.capitalize()}_{activation}_d{spec.num_d}"
    return name + "_batched" * spec.batched + "_grouped" * spec.grouped


def _extent(extent: Extent) -> str:
    return f"{extent.m}x{extent.n}x{extent.k}"
