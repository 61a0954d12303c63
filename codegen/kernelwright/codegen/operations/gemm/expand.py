"""Combinations of a GEMM configuration, for each of its variants."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.complete import PARTIAL, complete
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.operations.gemm.variants import KEYS, configs_of
from kernelwright.codegen.selecting.expand import MAX_COMBINATIONS, check_keys, read_sections
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError, Violation

# Names of wave counts in CK Tile's configurations.
_RENAMED = {f"warp_{axis}": f"wave_{axis}" for axis in "mnk"}


def expand_gemm(config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield every combination, with the violations that refuse it; SpecError for a malformed configuration.

    Fields are those of :mod:`kernelwright.codegen.operations.gemm.complete`; ``warp_m`` and the like are accepted for
    ``wave_m``. Besides the sections there may be ``variants``, for each of which the kernels of that variant are taken
    (see :mod:`kernelwright.codegen.operations.gemm.variants`).
    """
    check_keys(config, KEYS)
    total = 0
    parts = []
    for variant, one in configs_of(config, arch):
        problem, axes = read_sections(one, PARTIAL.names, lists=PARTIAL.groups, renamed=_RENAMED)
        total += math.prod(len(values) for values in axes.values())
        if total > MAX_COMBINATIONS:
            raise SpecError(f"the configuration has {total} combinations; at most {MAX_COMBINATIONS}: narrow a range")
        parts.append((variant, problem, axes))
    for variant, problem, axes in parts:
        for kernel, violations in _points(problem, axes, arch):
            served = gemm_spec(kernel).variant
            if variant is not None and served != variant:
                why = "the configuration asks for another variant"
                violations = (Violation("gemm.variant", "variant", served, why, variant, variant),)
            yield kernel, violations


def _points(
    problem: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], arch: Arch
) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    for point in itertools.product(*axes.values()):
        fields = complete({**problem, **dict(zip(axes, point, strict=True))}, arch)
        kernel = Kernel(arch=arch.name, spec=build_spec(fields))
        yield kernel, validate(kernel, arch)
