"""Convolution specs drawn by hypothesis, and one that is legal on AMD GPUs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import MAX_EXTENT, Activation, Extent, Padding, StreamK
from kernelwright.codegen.operations.convolution.spec import (
    ConvEpilogue,
    ConvPipeline,
    ConvScheduler,
    Direction,
    GroupedConvSpec,
    Plane,
    Vectors,
)
from kernelwright.problems.convolution.description import ConvLayout, Specialization

_sizes = st.sampled_from((1, 2, 4, 8, 16, 32, 64, 128, 256)) | st.integers(1, MAX_EXTENT)
_counts = st.sampled_from((0, 1, 2, 3, 4, 8)) | st.integers(0, MAX_EXTENT)


def specs() -> st.SearchStrategy[GroupedConvSpec]:
    """Any well-formed spec, legal or not."""
    extents = st.builds(Extent, m=_sizes, n=_sizes, k=_sizes)
    planes = st.builds(Plane, h=_counts, w=_counts)
    flags = ("depthwise", "double_smem_buffer", "split_image", "two_stage", "explicit_gemm", "bias", "residual")
    return st.builds(
        GroupedConvSpec,
        op=st.just("convolution"),
        direction=st.sampled_from(Direction),
        dtype=st.sampled_from(DType),
        layout=st.sampled_from(ConvLayout),
        tile=extents,
        wave=extents,
        warp_tile=extents,
        pipeline=st.sampled_from(ConvPipeline),
        epilogue=st.sampled_from(ConvEpilogue),
        scheduler=st.sampled_from(ConvScheduler),
        vector=st.builds(Vectors, a=_sizes, b=_sizes, c=_sizes),
        specialization=st.sampled_from(Specialization),
        pad=st.builds(Padding, m=st.booleans(), n=st.booleans(), k=st.booleans()),
        num_groups_to_merge=_sizes,
        num_wave_groups=_sizes,
        stream_k=st.sampled_from(StreamK),
        stream_k_persistent=st.booleans(),
        activation=st.sampled_from(Activation),
        image_tile=planes,
        filter=planes,
        stride=planes,
        padding=planes,
        subtile=planes,
        images=_sizes,
        **{name: st.booleans() for name in flags},
    )


LEGAL: dict[str, Any] = {
    "op": "convolution",
    "direction": "forward",
    "dtype": "fp16",
    "layout": "nhwgc",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
    "pipeline": "compv3",
}
"""A partial spec that is legal on gfx90a, gfx942 and gfx950."""
