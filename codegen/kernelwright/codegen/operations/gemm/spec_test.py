from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from pydantic import ValidationError

from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import Extent, GemmSpec, default_acc_dtype
from kernelwright.codegen.operations.gemm.testing.strategies import specs


@settings(max_examples=100, deadline=None)
@given(specs(), specs())
def test_identity_tells_specs_and_archs_apart(one: GemmSpec, other: GemmSpec) -> None:
    kernels = [Kernel(arch=arch, spec=spec) for arch in ("gfx942", "gfx950") for spec in (one, other)]
    assert len({kernel.identity for kernel in kernels}) == len(set(kernels)) == (2 if one == other else 4)


@settings(max_examples=100, deadline=None)
@given(specs())
def test_canonical_json_holds_the_whole_kernel(spec: GemmSpec) -> None:
    kernel = Kernel(arch="gfx942", spec=spec)
    assert Kernel.model_validate_json(kernel.canonical_json) == kernel
    assert kernel.identity == hashlib.sha256(kernel.canonical_json.encode()).hexdigest()
    assert kernel.symbol == "kw_kernel_" + kernel.identity[:16]
    assert json.dumps(json.loads(kernel.canonical_json), sort_keys=True, separators=(",", ":")) == kernel.canonical_json


@pytest.mark.parametrize("value", [0, -1, 65536, True, 1.0, "8"])
def test_extents_are_positive_whole_numbers(value: object) -> None:
    with pytest.raises(ValidationError):
        Extent.model_validate({"m": value, "n": 1, "k": 1})


def test_every_dtype_has_a_size_and_an_accumulator() -> None:
    assert set(ELEMENT_BYTES) == set(DType)
    assert {default_acc_dtype(dtype) for dtype in DType} == {DType.FP32, DType.INT32}


def test_a_spec_without_split_k_is_written_as_before_there_was_any() -> None:
    spec = GemmSpec.model_validate(
        {
            **{
                "op": "gemm",
                "dtype_a": "fp16",
                "dtype_b": "fp16",
                "dtype_c": "fp16",
                "dtype_acc": "fp32",
                "layout": "rcr",
            },
            **{extent: {"m": 128, "n": 128, "k": 32} for extent in ("tile", "wave", "warp_tile")},
            **{"pipeline": "compv3", "epilogue": "cshuffle", "scheduler": "intrawave"},
        }
    )
    assert "split_k" not in Kernel(arch="gfx942", spec=spec).canonical_json
    split = Kernel(arch="gfx942", spec=GemmSpec.model_validate({**spec.model_dump(), "split_k": True}))
    assert '"split_k":true' in split.canonical_json
    assert Kernel.model_validate_json(split.canonical_json) == split
