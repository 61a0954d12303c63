"""Row norms as the generator knows an operation: spec, name, rules, template, and what the compiler's report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, Spec, flat_names, flat_values
from kernelwright.codegen.operation import BackendPart, Expansion, Expectation, KernelSets
from kernelwright.codegen.selecting.expand import read_sections
from kernelwright.codegen.selecting.specs import build_spec, parse_kernel
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.templates import Template
from kernelwright.codegen.violations import Rule, SpecError, Violation

FOLDER = Path(__file__).parent


class Stage(StrEnum):
    """What a kernel computes of a row norm."""

    SQUARE = "square"
    SUM = "sum"


class RowNormSpec(Spec):
    """One kernel of a row norm on fp32."""

    op: Literal["row_norm"] = Field(description="The operation.")
    stage: Stage = Field(description="The stage that the kernel serves.")
    unroll: int = Field(default=8, gt=0, le=64, description="Elements that an iteration handles.")


def _whole_vectors(spec: RowNormSpec, arch: Arch) -> Iterator[Violation]:
    if spec.unroll & (spec.unroll - 1):
        nearest = 1 << (spec.unroll.bit_length() - 1)
        why = "vectors have a power of two of lanes"
        yield Violation("row_norm.unroll", "unroll", str(spec.unroll), why, "1, 2, 4, … 64", str(nearest))


class RowNormSets(KernelSets):
    """The one set: both stages."""

    def names(self) -> tuple[str, ...]:
        return ("default",)

    def archs(self, name: str) -> tuple[str, ...]:
        return ("x86_64_v3", "x86_64_v4")

    def expand(self, name: str, arch: Arch) -> Expansion:
        return Expansion(tuple(parse_kernel({"op": "row_norm", "stage": stage}, arch) for stage in Stage))


class RowNorm:
    """The operation, for :func:`kernelwright.codegen.operation.register`."""

    name = "row_norm"
    spec_type = RowNormSpec
    shorthands: Mapping[str, Any] = {}
    sets = RowNormSets()
    generator = None
    time_model = None
    attributes = flat_names(RowNormSpec)
    backends = ("cpu",)

    def check_arch(self, arch: Arch) -> None:
        pass

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> Mapping[str, Any]:
        return raw

    def name_of(self, spec: RowNormSpec) -> str:
        return f"row_norm_{spec.stage}_{spec.unroll}"

    def rules(self, backend: str) -> tuple[Rule, ...]:
        return (Rule("row_norm.unroll", "Vectors have a power of two of lanes.", _whole_vectors),)

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        problem, axes = read_sections(config, tuple(RowNormSpec.model_fields))
        for unroll in axes["unroll"]:
            kernel = Kernel(arch=arch.name, spec=build_spec({**problem, "unroll": unroll}))
            yield kernel, validate(kernel, arch)

    def view(self, spec: RowNormSpec) -> Mapping[str, Any]:
        return flat_values(spec)

    def variant(self, spec: RowNormSpec) -> str:
        return str(spec.stage)

    def features(self, spec: RowNormSpec, arch: Arch) -> tuple[str, ...]:
        return ()

    def context(self, kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        spec = kernel.spec
        assert isinstance(spec, RowNormSpec)
        return {"function": str(spec.stage), "op": f"KW_OP_ROW_{spec.stage.upper()}"}

    def on_backend(self, backend: str) -> BackendPart:
        if backend != "cpu":
            raise SpecError(f"no row-norm kernel is for the backend {backend!r}; allowed: cpu")
        template = (FOLDER / "templates/cpu.hpp.jinja").read_text("utf-8")
        return BackendPart({".hpp": Template("row_norm", template)}, trees=("row_norm", "cpu_row_norm"))

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        return 0.5

    def expects(self, kernel: Kernel, arch: Arch) -> Expectation:
        return Expectation()


TREE_ROOTS = {"row_norm": FOLDER, "cpu_row_norm": FOLDER}
