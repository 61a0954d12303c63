"""For tests: specs by hypothesis, and a backend that needs no compiler."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import jinja2
import pytest
from hypothesis import strategies as st

from kernelwright.arch import Arch
from kernelwright.codegen import render
from kernelwright.codegen.plan import Action, KernelPlan
from kernelwright.codegen.spec import (
    MAX_D_TENSORS,
    MAX_EXTENT,
    Activation,
    DOp,
    DType,
    Epilogue,
    Extent,
    GemmSpec,
    Kernel,
    Layout,
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
    """Specs out of the architecture's own tables, so that a good part of them is legal."""

    @st.composite
    def draw_spec(draw: st.DrawFn) -> GemmSpec:
        key = draw(st.sampled_from(sorted(arch.warp_tiles)))
        dtype_a, dtype_b, dtype_acc = key.split("_")
        pipeline = draw(st.sampled_from(sorted(arch.pipelines)))
        limits = arch.pipelines[pipeline]
        wave = draw(st.sampled_from(arch.waves))
        warp_tile = draw(st.sampled_from(arch.warp_tiles[key]))
        repeats = [draw(st.sampled_from((1, 2, 4, 8))) for _ in range(3)]
        tile = [w * t * r for w, t, r in zip(wave, warp_tile, repeats, strict=True)]
        return GemmSpec(
            dtype_a=DType(dtype_a),
            dtype_b=DType(dtype_b),
            dtype_acc=DType(dtype_acc),
            dtype_c=DType(draw(st.sampled_from(arch.outputs[key]))),
            layout=Layout(draw(st.sampled_from(arch.layouts))),
            tile=_extent(tile),
            wave=_extent(wave),
            warp_tile=_extent(warp_tile),
            pipeline=Pipeline(pipeline),
            epilogue=Epilogue(draw(st.sampled_from(limits.epilogues))),
            scheduler=Scheduler(draw(st.sampled_from(limits.schedulers))),
            persistent=draw(st.sampled_from(limits.persistent)),
            split_k=draw(st.sampled_from(limits.split_k)),
            preshuffle=limits.preshuffle,
            cluster=_extent(draw(st.sampled_from(arch.clusters))),
        )

    return draw_spec()


NULL_TEMPLATE = (
    "// {{ name }} {{ arch }} {{ identity }} {{ symbol }} {{ dtype_a }}\n#define SPEC {{ spec_json_literal }}\n"
)
"""What :class:`NullBackend` renders, under the name ``null/gemm.hpp.jinja``."""

_COPY = "import sys; open(sys.argv[1], 'wb').write(b''.join(open(p, 'rb').read() for p in sys.argv[2:]))"


@dataclass(frozen=True)
class NullToolchain:
    """A toolchain that is nothing but an identity."""

    identity: str = "null 1.0"


@dataclass(frozen=True)
class NullBackend:
    """Compiles by copying and links by concatenating; every action really runs."""

    name: str = "null"

    def context(self, kernel: Kernel) -> Mapping[str, object]:
        """One symbol."""
        return {"dtype_a": kernel.spec.dtype_a}

    def kernel_plan(self, kernel: Kernel, header: str) -> KernelPlan:
        """One action."""
        output = header.removesuffix(".hpp") + ".o"
        return KernelPlan((), (copy_action([header], output),), (output,))

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """One action."""
        return copy_action(objects, output)

    def library_actions(self, arch: str, table: str, objects: Sequence[str], library: str) -> tuple[Action, ...]:
        """One action."""
        return (copy_action([table, *objects], library),)


def copy_action(inputs: Sequence[str], output: str, **rest: object) -> Action:
    """An action that concatenates its inputs."""
    argv = (sys.executable, "-c", _COPY, output, *inputs)
    return Action(f"copy {output}", f"Copy to {output}", argv, tuple(inputs), (output,), **rest)  # type: ignore[arg-type]


def _extent(triple: Sequence[int]) -> Extent:
    return Extent(m=triple[0], n=triple[1], k=triple[2])


def null_templates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let :class:`NullBackend` render: its template beside the real ones."""
    real = render._read_template
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: NULL_TEMPLATE if name == "null/gemm.hpp.jinja" else real(name)),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
    )
    monkeypatch.setattr(render, "_environment", lambda: environment)
