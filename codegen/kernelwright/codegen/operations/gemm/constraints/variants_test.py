"""Which variants exclude each other, and how a backend refuses one."""

from __future__ import annotations

import pytest

from kernelwright.arch import load
from kernelwright.codegen.operations.gemm.complete import complete
from kernelwright.codegen.operations.gemm.constraints.variants import FIELDS, check_variants, refused
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.selecting.specs import build_spec

ARCH = load("x86_64_v3")
PLAIN = {"op": "gemm", "dtype": "fp32", "layout": "rcr", "tile": [144, 4096, 512], "warp_tile": [6, 16, 1]}


def _spec(**fields: object) -> GemmSpec:
    spec = build_spec(complete({**PLAIN, **fields}, ARCH))
    assert isinstance(spec, GemmSpec)
    return spec


@pytest.mark.parametrize(
    ("fields", "refused_fields"),
    [
        ({}, set()),
        ({"num_d": 2, "d_op": "multiply", "activation": "relu", "batched": True}, set()),
        ({"stream_k": "tree", "num_d": 1}, set()),
        ({"d_op": "multiply"}, {"d_op"}),
        ({"activation": "any", "batched": True}, set()),
        ({"activation": "any", "num_d": 1, "d_op": "multiply"}, {"num_d"}),
        ({"activation": "any", "grouped": True}, {"activation"}),
        ({"split_k": True, "stream_k": "linear"}, {"split_k"}),
        ({"grouped": True}, set()),
        ({"grouped": True, "batched": True, "num_d": 1, "activation": "tanh"}, {"batched", "num_d", "activation"}),
        ({"grouped": True, "split_k": True, "stream_k": "tree"}, {"split_k", "stream_k"}),
    ],
)
def test_some_variants_exclude_each_other(fields: dict[str, object], refused_fields: set[str]) -> None:
    assert {violation.field for violation in check_variants(_spec(**fields), ARCH)} == refused_fields


@pytest.mark.parametrize(
    ("field", "value"),
    zip(FIELDS, ("linear", 1, "gelu", True, True), strict=True),
)
def test_a_backend_refuses_a_field_that_is_set_and_says_why(field: str, value: object) -> None:
    reasons = dict.fromkeys(FIELDS, "there is no such kernel")
    (violation,) = refused("x.variants", _spec(**{field: value}), reasons)
    assert (violation.rule, violation.field) == ("x.variants", field) and "no such kernel" in str(violation)
    assert not list(refused("x.variants", _spec(), reasons))
