from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.arch import load, names
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.norm.formulas import gpu
from kernelwright.codegen.operations.norm.formulas.processors import Problem, estimate
from kernelwright.codegen.operations.norm.spec import Direction, Kind, NormSpec, norm_spec
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import IllegalKernelError, SpecError

V3 = load("x86_64_v3")
SPECS = st.builds(
    NormSpec,
    op=st.just("norm"),
    kind=st.sampled_from(Kind),
    direction=st.sampled_from(Direction),
    dtype=st.sampled_from(DType),
    dtype_y=st.sampled_from(DType),
    unroll=st.integers(1, 64),
    rows_per_block=st.integers(1, 4),
    threads_per_row=st.integers(1, 4),
    vector=st.integers(0, 4),
)
GPUS = [name for name in names() if not name.startswith("x86")]


def test_a_partial_spec_is_completed() -> None:
    kernel = parse_kernel({"op": "norm", "kind": "rms", "dtype": "bf16"}, V3)
    assert kernel.name == "rms_norm_forward_bf16_4" and '"dtype_y":"bf16"' in kernel.canonical_json
    with pytest.raises(SpecError, match="missing field 'dtype', 'dtype_y'"):
        parse_kernel({"op": "norm", "kind": "rms"}, V3)


@given(st.lists(SPECS, min_size=2, max_size=40, unique=True))
def test_names_are_unique(specs: list[NormSpec]) -> None:
    kernel_names = [Kernel(arch="x86_64_v3", spec=spec).name for spec in specs]
    assert len(set(kernel_names)) == len(kernel_names)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unroll": 3}, r"(?s)norm_cpu\.unroll: unroll = 3.*allowed: 1, 2, 4.*nearest legal kernel: unroll = "),
        ({"dtype": "int8"}, r"norm\.dtype: dtype = int8.*allowed: fp32, fp16, bf16"),
        ({"direction": "backward", "dtype_y": "int8"}, r"norm\.result: dtype_y = int8.*allowed: bf16"),
        ({"dtype_y": "fp32"}, r"norm\.result: dtype_y = fp32.*allowed: bf16, int8, fp8"),
    ],
)
def test_an_illegal_spec_says_what_is_allowed(change: dict[str, object], message: str) -> None:
    with pytest.raises(IllegalKernelError, match=message):
        parse_kernel({"op": "norm", "kind": "layer", "dtype": "bf16", **change}, V3)


@pytest.mark.parametrize("name", ["essential", "default", "all"])
def test_sets_are_legal_on_every_architecture(name: str) -> None:
    assert operation("norm").sets.archs(name) == tuple(names())
    kernels = expand_set(f"norm:{name}", V3).kernels
    assert len(set(kernels)) == len(kernels) == (72 if name == "all" else 24)
    assert all("norm_kernel instance = norm<KW_OP_" in str(render_kernel(kernel, V3, "cpu")) for kernel in kernels)
    for arch in map(load, names()):
        made = expand_set(f"norm:{name}", arch).kernels
        assert not [violation for kernel in made for violation in validate(kernel, arch)]
        assert any(norm_spec(kernel).dtype_y == "fp8" for kernel in made) == bool(
            arch.flops_per_clock_per_cu.get("fp8")
        )


@pytest.mark.parametrize("arch", GPUS)
def test_kernels_of_gpus_say_how_threads_share_a_row(arch: str) -> None:
    kernel = parse_kernel({"op": "norm", "kind": "layer", "direction": "backward", "dtype": "bf16"}, load(arch))
    assert kernel.name == "layer_norm_backward_bf16_1x256x8x2"
    text = str(render_kernel(kernel, load(arch), load(arch).backend))
    assert "threads = 256, rows = 1" in text and "vector = 8, unroll = 2" in text and "finish" in text
    wave = load(arch).wave_size
    assert f"wave = {wave};" in text and "centred = true" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"threads_per_row": 96}, r"norm_gpu\.threads_per_row.*added up in halves.*allowed: 1, 2, 4"),
        ({"threads_per_row": 16}, r"norm_gpu\.rows_per_block.*16 threads: not whole waves of 64.*allowed: 4, 8"),
        ({"rows_per_block": 8}, r"norm_gpu\.rows_per_block.*2048 threads"),
        ({"vector": 3}, r"norm_gpu\.vector.*allowed: 2, 4, 8"),
        ({"vector": 2, "dtype_y": "int8"}, r"norm_gpu\.vector.*allowed: 4, 8"),
        ({"unroll": 8}, r"norm_gpu\.unroll.*up to 32 elements.*allowed: 1, 2, 4"),
        ({"dtype_y": "fp8"}, r"norm_gpu\.fp8: dtype_y = fp8.*gfx90a has no instruction.*allowed: bf16, int8"),
    ],
)
def test_an_illegal_share_of_rows_says_what_is_allowed(change: dict[str, object], message: str) -> None:
    with pytest.raises(IllegalKernelError, match=f"(?s){message}"):
        parse_kernel({"op": "norm", "kind": "layer", "dtype": "bf16", **change}, load("gfx90a"))


def test_processors_have_no_threads_of_a_row() -> None:
    with pytest.raises(IllegalKernelError, match=r"norm_cpu\.tile: threads_per_row = 32.*it is of GPUs"):
        parse_kernel({"op": "norm", "kind": "layer", "dtype": "bf16", "threads_per_row": 32}, V3)


def test_times_on_gpus_grow_and_prefer_kernels_whose_registers_hold_a_row() -> None:
    device = device_of(load("sm_90a"), "bf16", 132)
    wave, usual, long = (gpu.Kernel(8, 32, 8, 2), gpu.Kernel(1, 128, 8, 4), gpu.Kernel(1, 512, 8, 4))

    def us(kernel: gpu.Kernel, rows: float, columns: float) -> float:
        return gpu.estimate(gpu.Problem(rows, columns, 2.0, 4 * rows * columns, 2.0, 0.0), kernel, device).total_us

    for kernel in (wave, usual, long):
        assert us(kernel, 16384, 4096) > us(kernel, 4096, 4096) > 0
        assert us(kernel, 4096, 8192) > us(kernel, 4096, 4096)
    assert us(wave, 65536, 256) < us(long, 65536, 256)
    assert us(long, 4096, 16384) < us(usual, 4096, 16384) < us(wave, 4096, 16384)


def test_times_grow_with_rows_columns_and_passes() -> None:
    device = device_of(V3, "fp32", 8)
    for rows, columns in itertools.product((1.0, 64.0, 4096.0), (64.0, 4096.0)):
        one = Problem(rows, columns, 2.0, 8 * rows * columns, False, False)
        longer = (
            one._replace(rows=16 * rows, bytes=16 * one.bytes),
            one._replace(columns=16 * columns, bytes=16 * one.bytes),
            one._replace(quantised=True),
        )
        for other in longer:
            assert estimate(other, 4.0, device).total_us >= estimate(one, 4.0, device).total_us > 0
    wide = Problem(1.0, 4096.0, 2.0, 0.0, False, False)
    assert estimate(wide, 4.0, device).total_us < estimate(wide, 1.0, device).total_us, "additions wait for each other"
