"""Converts data (JSON, BUILD fields, one point of a configuration) to kernels, with the defaults filled in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from kernelwright.arch import Arch
from kernelwright.codegen.inputs import reason
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.codegen.operation import Operation, operation, operation_names
from kernelwright.codegen.selecting.nearest import changes, nearest_legal
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import IllegalKernelError, Nearest, SpecError


def parse_kernel(raw: object, arch: Arch) -> Kernel:
    """Return a legal kernel from a spec that states its ``op`` and may omit fields with a default on the architecture.

    Raises SpecError for unknown keys and wrong values, IllegalKernelError with every reason for an illegal kernel.
    """
    kernel = Kernel(arch=arch.name, spec=parse_spec(raw, arch))
    violations = validate(kernel, arch)
    if violations:
        raise IllegalKernelError(arch.name, kernel.name, violations, lambda: _nearest(kernel, arch))
    return kernel


def _nearest(kernel: Kernel, arch: Arch) -> Nearest:
    nearest = nearest_legal(kernel, arch)
    return (nearest.spec.model_dump(mode="json"), changes(kernel, nearest)) if nearest else None


def parse_kernels(raws: Iterable[object], arch: Arch) -> list[Kernel]:
    """:func:`parse_kernel` for a list; errors say which entry is wrong. The same kernel twice is an error."""
    indices: dict[Kernel, int] = {}
    for index, raw in enumerate(raws):
        try:
            kernel = parse_kernel(raw, arch)
        except IllegalKernelError:
            raise
        except SpecError as error:
            raise SpecError(f"spec {index}: {error}") from None
        if kernel in indices:
            raise SpecError(f"spec {index} is the same kernel as spec {indices[kernel]}: {kernel.name} for {arch.name}")
        indices[kernel] = index
    if not indices:
        raise SpecError("the list of specs is empty")
    return list(indices)


def parse_spec(raw: object, arch: Arch) -> Spec:
    """Return a complete spec, not yet checked against the limits of ``arch``; see :func:`parse_kernel`."""
    if not isinstance(raw, Mapping):
        raise SpecError(f"a spec is an object with fields such as op, dtype and tile, not {raw!r}")
    return build_spec(stated_operation(raw, "a spec").complete(raw, arch))


def stated_operation(raw: Mapping[str, Any], what: str) -> Operation:
    """The operation that ``raw`` names as ``op``, which has no default; SpecError if it is missing or unknown."""
    if "op" not in raw:
        known = " or ".join(f'"op": "{name}"' for name in operation_names())
        raise SpecError(f"{what} must state its operation; add {known}")
    return operation(raw["op"])


def build_spec(fields: Mapping[str, Any]) -> Spec:
    """The spec with exactly these fields; SpecError with one line per wrong field instead of pydantic's report."""
    try:
        return operation(fields["op"]).spec_type.model_validate(fields)
    except ValidationError as error:
        raise SpecError("; ".join(reason(item) for item in error.errors())) from None
