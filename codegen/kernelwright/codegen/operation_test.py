"""An operation of two stages that only this test knows goes from spec to compile plan without an edit elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.kernel import OMITTED_AT_DEFAULT, Kernel, Spec, flat_names, flat_values
from kernelwright.codegen.operation import (
    BackendPart,
    Expansion,
    Expectation,
    KernelSets,
    operation,
    operation_names,
    register,
    unregister,
)
from kernelwright.codegen.registry import OPERATIONS
from kernelwright.codegen.resources import ck_tile
from kernelwright.codegen.resources.amd.metadata import ReportError
from kernelwright.codegen.selecting.expand import EmptyExpansionError, check_keys, read_sections
from kernelwright.codegen.selecting.filters import FilterError, apply_filter
from kernelwright.codegen.selecting.selection import load_archs
from kernelwright.codegen.selecting.specs import build_spec, parse_kernel, parse_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.templates import Template
from kernelwright.codegen.violations import IllegalKernelError, Rule, SpecError, Violation

ARCH = "x86_64_v3"


class NullSpec(Spec):
    """Copies ``elements`` numbers, in a first or a second stage."""

    op: Literal["null"] = Field(description="The operation.")
    elements: int = Field(gt=0, description="Numbers to copy.")
    stage: Literal["first", "second"] = Field(default="first", description="Which half of the work.")
    unroll: int = Field(default=1, gt=0, json_schema_extra=OMITTED_AT_DEFAULT, description="Copies of the loop.")


def _too_many(spec: NullSpec, arch: Arch) -> Iterator[Violation]:
    if spec.elements > arch.lds_bytes:
        yield Violation("null.elements", "elements", str(spec.elements), "too many", f"<= {arch.lds_bytes}", "1")


class NullSets(KernelSets):
    def names(self) -> tuple[str, ...]:
        return ("null_both",)

    def archs(self, name: str) -> tuple[str, ...]:
        return (ARCH,)

    def expand(self, name: str, arch: Arch) -> Expansion:
        if arch.name != ARCH:
            raise EmptyExpansionError(f"{name} is for {ARCH}")
        stages = ("first", "second")
        return Expansion(tuple(parse_kernel({"op": "null", "elements": 4, "stage": one}, arch) for one in stages))


class Null:
    name = "null"
    spec_type = NullSpec
    shorthands: Mapping[str, Any] = {}
    sets = NullSets()
    generator = None
    attributes = flat_names(NullSpec)
    backends = ("null",)

    def check_arch(self, arch: Arch) -> None:
        pass

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> Mapping[str, Any]:
        return raw

    def name_of(self, spec: NullSpec) -> str:
        return f"null_{spec.elements}_{spec.stage}_{spec.unroll}"

    def rules(self, backend: str) -> tuple[Rule, ...]:
        return (Rule("null.elements", "There is only so much memory.", _too_many),)

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        check_keys(config)
        problem, axes = read_sections(config, tuple(NullSpec.model_fields))
        for elements in axes["elements"]:
            kernel = Kernel(arch=arch.name, spec=build_spec({**problem, "elements": elements}))
            yield kernel, validate(kernel, arch)

    def view(self, spec: NullSpec) -> Mapping[str, Any]:
        return flat_values(spec)

    def variant(self, spec: NullSpec) -> str:
        return spec.stage

    def features(self, spec: NullSpec, arch: Arch) -> tuple[str, ...]:
        return ()

    def context(self, kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        return {"stage": kernel.spec.model_dump()["stage"]}

    def on_backend(self, backend: str) -> BackendPart:
        return BackendPart(
            {".hpp": Template("null", "// {{ name }}: {{ stage }} of {{ spec.elements }}\n")}, trees=("hip_common",)
        )

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        return 0.5

    def expects(self, kernel: Kernel, arch: Arch) -> Expectation:
        return Expectation()


@pytest.fixture(autouse=True)
def null() -> Iterator[Null]:
    made = Null()
    register(made)
    yield made
    unregister("null")


def test_a_spec_becomes_a_kernel_whose_fields_decide_what_it_is() -> None:
    arch = archs.load(ARCH)
    kernel = parse_kernel({"op": "null", "elements": 4}, arch)
    assert kernel.name == "null_4_first_1"
    assert json.loads(kernel.canonical_json) == {"arch": ARCH, "spec": {"op": "null", "elements": 4, "stage": "first"}}
    assert Kernel.model_validate_json(kernel.canonical_json) == kernel
    assert parse_kernel({"op": "null", "elements": 4, "unroll": 2}, arch).identity != kernel.identity
    with pytest.raises(
        IllegalKernelError, match=r"too many; allowed: <= 524288\n  nearest legal kernel: elements = 524288"
    ):
        parse_kernel({"op": "null", "elements": 1_000_000}, arch)
    with pytest.raises(SpecError, match="elements = 0: should be greater than 0"):
        parse_spec({"op": "null", "elements": 0}, arch)


def test_requests_plan_it_beside_gemm() -> None:
    gemm = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]}
    specs = [gemm, {"op": "null", "elements": 4}, {"op": "null", "elements": 4, "stage": "second"}]
    (library,) = respond({"stage": "plan", "name": "both", "archs": [ARCH], "specs": specs})["libraries"]
    listed = {kernel["name"]: kernel for kernel in library["kernels"]}
    assert [listed[name]["expects"]["matrix_instructions"] for name in sorted(listed)] == [True, False, False]
    files = {file["path"]: file["text"] for file in library["files"]}
    assert files[f"{ARCH}/null_4_second_1.hpp"] == "// null_4_second_1: second of 4\n"
    (compiled,) = (action for action in library["actions"] if action["outputs"] == [f"{ARCH}/null_4_first_1.o"])
    assert "hip_common" in compiled["trees"] and "-I__hip_common/include" in compiled["argv"], "its own headers"
    others = [a for a in library["actions"] if "gemm_fp32" in a["outputs"][0]]
    assert others and not any("hip_common" in action["trees"] for action in others), "GEMM sees none of them"
    (table,) = (text for path, text in files.items() if path.endswith("_table.c"))
    assert all(f"/* {name} */" in table for name in listed)


def test_sets_configurations_and_filters_know_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernels", "--set", "null_both", "--count"]) == 0
    assert capsys.readouterr().out == f"{ARCH} 2\n"
    config = {"op": "null", "problem": {"stage": "second"}, "tile_config": {"elements": [1, 2, 10_000_000]}}
    response = respond({"stage": "expand", "archs": [ARCH], "config": config, "filter": "c.elements > 1"})
    assert [kernel["name"] for kernel in response["kernels"]] == ["null_2_second_1"]
    assert response["dropped"] == [{"arch": ARCH, "rule": "null.elements", "count": 1}]
    arch = archs.load(ARCH)
    gemm = operation("gemm").sets.expand("essential", arch).kernels
    both = [*gemm, *operation("null").sets.expand("null_both", arch).kernels]
    assert len(apply_filter("c.op == 'null' and c.elements == 4", both)) == 2
    with pytest.raises(FilterError, match=r"on a kernel of gemm: .*elements"):
        apply_filter("c.elements == 4", both)


def test_a_kernel_without_matrix_instructions_is_fine_where_its_operation_says_so() -> None:
    assembly = (
        "\t.size\tk, 4\n; codeLenInByte = 8\n\t.amdgpu_metadata\namdhsa.kernels:\n  - .symbol: k.kd\n"
        + "".join(f"    .{key}: 1\n" for key in ck_tile._METADATA.values())
        + "\t.end_amdgpu_metadata\n"
    ).encode()
    assert ck_tile.read_report(assembly, Expectation(matrix_instructions=False))["matrix_instructions"] == 0
    with pytest.raises(ReportError, match=r"k\.kd has no matrix instruction"):
        ck_tile.read_report(assembly, Expectation(matrix_instructions=True))
    with pytest.raises(ReportError, match="expected 2 kernels in the assembly, found 1"):
        ck_tile.read_report(assembly, Expectation(device_kernels=2, matrix_instructions=False))


def test_an_architecture_may_have_a_section_for_it(tmp_path: Path, null: Null, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.arch.model._registered", {})
    path = tmp_path / "arch.json"
    shipped = archs.load(ARCH)
    raw = {**shipped.model_dump(mode="json"), "name": "made_up", "operations": {"null": {"anything": 1}}}
    path.write_text(json.dumps(raw))
    seen: list[str] = []
    monkeypatch.setattr(null, "check_arch", lambda arch: seen.append(arch.name))
    assert "made_up" in load_archs([str(path)]) and seen == ["made_up"]


def test_names_are_taken_once(null: Null) -> None:
    assert operation_names() == (*OPERATIONS, "null")
    register(null)
    for taken in (Null(), operation("gemm")):
        with pytest.raises(SpecError, match="exists already; choose another name"):
            register(taken)
    with pytest.raises(SpecError, match=r"op = 'nul' \(did you mean 'null'\?\); allowed: gemm, .*null"):
        operation("nul")
    with pytest.raises(SpecError, match=r"unknown operation op = \['gemm'\] .*; allowed: gemm, .*null"):
        parse_spec({"op": ["gemm"]}, archs.load(ARCH))
    with pytest.raises(SpecError, match=r'a spec must state its operation; add "op": "gemm" or .*"op": "null"'):
        parse_spec({"elements": 1}, archs.load(ARCH))
