"""GEMM specs drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.spec import (
    MAX_D_TENSORS,
    MAX_EXTENT,
    Activation,
    DOp,
    Epilogue,
    Extent,
    GemmSpec,
    Padding,
    Pipeline,
    Scheduler,
    StreamK,
)

_extents = st.integers(1, MAX_EXTENT) | st.sampled_from((1, 2, 16, 32, 64, 128, 256))
_counts = st.integers(1, 4) | st.integers(1, MAX_EXTENT)


def extents() -> st.SearchStrategy[Extent]:
    """Any extents, small powers of two more often."""
    return st.builds(Extent, m=_extents, n=_extents, k=_extents)


def specs() -> st.SearchStrategy[GemmSpec]:
    """Any well-formed spec, legal or not."""
    return st.builds(
        GemmSpec,
        op=st.just("gemm"),
        **{field: st.sampled_from(DType) for field in ("dtype_a", "dtype_b", "dtype_c", "dtype_acc")},
        layout=st.sampled_from(Layout),
        tile=extents(),
        wave=extents(),
        warp_tile=extents(),
        pipeline=st.sampled_from(Pipeline),
        epilogue=st.sampled_from(Epilogue),
        scheduler=st.sampled_from(Scheduler),
        pad=st.builds(Padding, m=st.booleans(), n=st.booleans(), k=st.booleans()),
        persistent=st.booleans(),
        preshuffle=st.booleans(),
        cluster=extents() | st.just(Extent(m=1, n=1, k=1)),
        num_wave_groups=_counts,
        k_block_per_cu=_counts,
        split_k=st.booleans(),
        stream_k=st.sampled_from(StreamK),
        num_d=st.integers(0, MAX_D_TENSORS),
        d_op=st.sampled_from(DOp),
        activation=st.sampled_from(Activation),
        batched=st.booleans(),
        grouped=st.booleans(),
    )


def likely_specs(arch: Arch) -> st.SearchStrategy[GemmSpec]:
    """Specs from the architecture's own tables, so that many of them are legal."""

    @st.composite
    def draw_spec(draw: st.DrawFn) -> GemmSpec:
        key = draw(st.sampled_from(sorted(gemm_section(arch).warp_tiles)))
        dtype_a, dtype_b, dtype_acc = key.split("_")
        pipeline = draw(st.sampled_from(sorted(gemm_section(arch).pipelines)))
        limits = gemm_section(arch).pipelines[pipeline]
        wave = draw(st.sampled_from(gemm_section(arch).waves))
        warp_tile = draw(st.sampled_from(gemm_section(arch).warp_tiles[key]))
        repeats = [draw(st.sampled_from((1, 2, 4, 8))) for _ in range(3)]
        tile = [w * t * r for w, t, r in zip(wave, warp_tile, repeats, strict=True)]
        return GemmSpec(
            op="gemm",
            dtype_a=DType(dtype_a),
            dtype_b=DType(dtype_b),
            dtype_acc=DType(dtype_acc),
            dtype_c=DType(draw(st.sampled_from(gemm_section(arch).outputs[key]))),
            layout=Layout(draw(st.sampled_from(gemm_section(arch).layouts))),
            tile=_extent(tile),
            wave=_extent(wave),
            warp_tile=_extent(warp_tile),
            pipeline=Pipeline(pipeline),
            epilogue=Epilogue(draw(st.sampled_from(limits.epilogues))),
            scheduler=Scheduler(draw(st.sampled_from(limits.schedulers))),
            persistent=draw(st.sampled_from(limits.persistent)),
            split_k=draw(st.sampled_from(limits.split_k)),
            preshuffle=limits.preshuffle,
            cluster=_extent(draw(st.sampled_from(gemm_section(arch).clusters))),
        )

    return draw_spec()


def _extent(triple: Sequence[int]) -> Extent:
    return Extent(m=triple[0], n=triple[1], k=triple[2])
