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
from kernelwright.codegen.operations.norm.formulas.processors import Problem, estimate
from kernelwright.codegen.operations.norm.spec import Direction, Kind, NormSpec
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.expand import EmptyExpansionError
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
)


def test_a_partial_spec_is_completed() -> None:
    kernel = parse_kernel({"op": "norm", "kind": "rms", "dtype": "bf16"}, V3)
    assert kernel.name == "rms_norm_forward_bf16_4" and '"dtype_y":"bf16"' in kernel.canonical_json
    with pytest.raises(SpecError, match="missing field 'dtype', 'dtype_y'"):
        parse_kernel({"op": "norm", "kind": "rms"}, V3)


@given(st.lists(SPECS, min_size=2, max_size=40, unique=True))
def test_names_are_unique(specs: list[NormSpec]) -> None:
    found = [Kernel(arch="x86_64_v3", spec=spec).name for spec in specs]
    assert len(set(found)) == len(found)


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


@pytest.mark.parametrize("name", ["default", "all"])
def test_sets_are_legal_and_for_processors(name: str) -> None:
    assert operation("norm").sets.archs(name) == ("x86_64_v3", "x86_64_v4")
    kernels = expand_set(f"norm:{name}", V3).kernels
    assert len(set(kernels)) == len(kernels) == (24 if name == "default" else 72)
    assert not [violation for kernel in kernels for violation in validate(kernel, V3)]
    assert all("norm_kernel instance = norm<KW_OP_" in str(render_kernel(kernel, V3, "cpu")) for kernel in kernels)


@pytest.mark.parametrize("arch", [name for name in names() if not name.startswith("x86")])
def test_other_backends_have_no_kernel(arch: str) -> None:
    with pytest.raises(EmptyExpansionError, match="allowed: processors"):
        expand_set("norm:default", load(arch))
    with pytest.raises(SpecError, match=r"no norm kernel is for the backend '\w+'; allowed: cpu"):
        operation("norm").on_backend(load(arch).backend)


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
