"""The readable name of a kernel: CK Tile's grammar, completed until two specs never share a name."""

from __future__ import annotations

from kernelwright.codegen.spec import DOp, Extent, GemmSpec, StreamK, default_acc_dtype, default_output_dtype


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
    if spec.preshuffle:
        name += "_preshuffle"
    cluster = spec.cluster
    if cluster.m != 1 or cluster.n != 1 or cluster.k != 1:
        name += f"_cluster{_extent(cluster)}"
    if spec.num_wave_groups != 1:
        name += f"_wg{spec.num_wave_groups}"
    if spec.k_block_per_cu != 1:
        name += f"_kbpc{spec.k_block_per_cu}"
    if spec.split_k:
        name += "_splitk"
    return name + _variant(spec)


def _variant(spec: GemmSpec) -> str:
    name = ""
    if spec.stream_k is not StreamK.NONE:
        name += f"_streamk_{spec.stream_k}"
    if spec.fused or spec.d_op is not DOp.ADD:
        activation = "".join(part.capitalize() for part in spec.activation.split("_"))
        name += f"_multid_{spec.d_op.capitalize()}_{activation}_d{spec.num_d}"
    if spec.batched:
        name += "_batched"
    if spec.grouped:
        name += "_grouped"
    return name


def _extent(extent: Extent) -> str:
    return f"{extent.m}x{extent.n}x{extent.k}"
