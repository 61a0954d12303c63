"""What an operation that is a folder need not say: each of these fields has a default that promises nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest
from pydantic import Field

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.codegen.operation import Expansion, Expectation, KernelSets, operation, register, unregister
from kernelwright.codegen.selecting.expand import expand_config
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import SpecError

ARCH = archs.load("x86_64_v3")


class PlainSpec(Spec):
    """Adds ``unroll`` numbers."""

    op: Literal["plain"] = Field(description="The operation.")
    unroll: int = Field(default=1, gt=0, description="Numbers of an iteration.")
    dtype: Literal["fp32", "fp16"] = Field(default="fp32", description="Their type.")


class PlainSets(KernelSets):
    """One set."""

    def names(self) -> tuple[str, ...]:
        return ("only",)

    def archs(self, name: str) -> tuple[str, ...]:
        return (ARCH.name,)

    def expand(self, name: str, arch: Arch) -> Expansion:
        return Expansion((parse_kernel({"op": "plain"}, arch),))


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[FolderOperation]:
    made = FolderOperation(
        name="plain",
        title="sum",
        package="nowhere",
        spec_type=PlainSpec,
        templates={"cpu": {".hpp": "plain.hpp.jinja"}},
        sets=PlainSets(),
        name_of=lambda spec: f"plain_{spec.dtype}_{spec.unroll}",
    )
    monkeypatch.setattr("kernelwright.codegen.folder_operation._rules", lambda package, backend: ())
    register(made)
    yield made
    unregister("plain")


def test_it_promises_nothing(plain: FolderOperation) -> None:
    kernel = parse_kernel({"op": "plain"}, ARCH)
    own = operation("plain")
    own.check_arch(ARCH)
    assert own.attributes == ("op", "unroll", "dtype") and own.variant(kernel.spec) == ""
    assert own.view(kernel.spec) == {"op": "plain", "unroll": 1, "dtype": "fp32"}
    assert own.features(kernel.spec, ARCH) == () and own.seconds(kernel, ARCH) > 0
    assert own.expects(kernel, ARCH) == Expectation(1, matrix_instructions=False) and not plain.joins
    assert expand_set("only", ARCH).kernels == expand_set("plain:only", ARCH).kernels == (kernel,)


def test_its_configurations_have_the_fields_of_its_specs() -> None:
    config = {"op": "plain", "problem": {"dtype": "fp16"}, "tile_config": {"unroll": {"min": 1, "max": 4}}}
    names = [kernel.name for kernel in expand_config(config, ARCH).kernels]
    assert names == [f"plain_fp16_{unroll}" for unroll in (1, 2, 3, 4)]
    for wrong, why in (
        (
            {"op": "plain", "tile_config": {"rolls": [1]}},
            r"unknown field 'rolls' \(did you mean 'unroll'\?\); allowed: op, unroll, dtype",
        ),
        ({"op": "plain", "tiles": {}}, "unknown section 'tiles'"),
        ({"problem": {"op": "plain"}, "tile_config": {"unroll": [0]}}, "unroll = 0"),
        ({"op": "plain", "tile_config": {axis: {"min": 1, "max": 1000} for axis in ("unroll", "dtype")}}, None),
    ):
        with pytest.raises(SpecError, match=why):
            expand_config(wrong, ARCH)


def test_the_search_for_a_legal_kernel_knows_what_is_computed() -> None:
    assert PlainSpec.computed == ()
    for op in ("gemm", "convolution", "attention"):
        kind = operation(op).spec_type
        assert kind.computed and set(kind.computed) <= set(kind.model_fields)
    assert Kernel(arch=ARCH.name, spec=PlainSpec(op="plain")).canonical_json.count("computed") == 0
