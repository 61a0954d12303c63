"""Combinations of a convolution configuration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.complete import PARTIAL, complete
from kernelwright.codegen.selecting.expand import MAX_COMBINATIONS, check_keys, read_sections
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError, Violation


def expand_conv(config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield every combination, with the violations that refuse it; SpecError for a malformed configuration.

    Fields are those of :mod:`kernelwright.codegen.operations.convolution.complete`.
    """
    check_keys(config)
    problem, axes = read_sections(config, PARTIAL.names, lists=PARTIAL.groups)
    total = math.prod(len(values) for values in axes.values())
    if total > MAX_COMBINATIONS:
        raise SpecError(f"the configuration has {total} combinations; at most {MAX_COMBINATIONS}: narrow a range")
    for point in itertools.product(*axes.values()):
        fields = complete({**problem, **dict(zip(axes, point, strict=True))}, arch)
        kernel = Kernel(arch=arch.name, spec=build_spec(fields))
        yield kernel, validate(kernel, arch)
