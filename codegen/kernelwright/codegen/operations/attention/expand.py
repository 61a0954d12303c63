"""Kernels of the architecture's table, and combinations of an attention configuration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.complete import FIELDS, MODELS, complete
from kernelwright.codegen.operations.attention.products import points
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.selecting.expand import MAX_COMBINATIONS, check_keys, read_sections
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError, Violation

_DEFAULTS = {name: info.default for name, info in AttentionSpec.model_fields.items() if not info.is_required()}


def expand_table(
    arch: Arch, keeps: Callable[[Mapping[str, Any]], Any], extended: bool
) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield kernels of every table line and every combination of its features for which ``keeps`` is true.

    ``keeps`` is given the fields of a spec. ``extended`` includes the combinations that only some receipts list.
    """
    checks = [rule.check for rule in operation("attention").rules(arch.backend)]
    for row in attention_section(arch).kernels:
        of_row = {
            **row.extents,
            "op": "attention",
            "family": row.family,
            "hdim_q": row.hdim[0],
            "hdim_v": row.hdim[1],
            "block_per_cu": row.block_per_cu,
            "max_seq_len_q": row.max_seq_len_q,
            "constraint_tag": row.constraint_tag,
        }
        for dtype, product in itertools.product(row.dtypes, row.products):
            same = {**_DEFAULTS, **of_row, "dtype": dtype}
            for point in points(product):
                if point.extended and not extended:
                    continue
                fields = {**same, **point.fields}
                if keeps(fields):
                    spec = AttentionSpec.model_validate(fields)
                    kernel = Kernel.model_construct(arch=arch.name, spec=spec)
                    yield kernel, tuple(violation for check in checks for violation in check(spec, arch))


def expand_attention(config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield every combination of a configuration, with the violations that refuse it; SpecError if it is malformed.

    Fields are those of :mod:`kernelwright.codegen.operations.attention.complete`.
    """
    check_keys(config)
    problem, axes = read_sections(config, FIELDS, lists=tuple(MODELS))
    total = math.prod(len(values) for values in axes.values())
    if total > MAX_COMBINATIONS:
        raise SpecError(f"the configuration has {total} combinations; at most {MAX_COMBINATIONS}: narrow a range")
    for values in itertools.product(*axes.values()):
        fields = complete({**problem, **dict(zip(axes, values, strict=True))}, arch)
        kernel = Kernel(arch=arch.name, spec=build_spec(fields))
        yield kernel, validate(kernel, arch)
