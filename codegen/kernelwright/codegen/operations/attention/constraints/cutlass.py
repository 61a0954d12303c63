"""What the attention kernels for NVIDIA GPUs do not compute."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention import cutlass as symbols
from kernelwright.codegen.operations.attention.constraints.report import one_of, wrong
from kernelwright.codegen.operations.attention.kinds import Bias, Family
from kernelwright.codegen.operations.attention.rules.cuda import PAGE_PART
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import Violation, rules

_NOWHERE = ("dropout", "dbias", "store_randval", "skip_min_seqlen_q", "static_quant")


def check_family(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Families that have a kernel; dQ is never left as sums, so that nothing converts it."""
    if spec.family not in symbols.SOURCES_OF:
        yield from one_of(
            "attention_cuda.family", "family", spec.family, tuple(symbols.SOURCES_OF), "no such kernel is written"
        )


def check_bias(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Kernels that read prompts' keys from pages add ALiBi, which needs no tensor, or nothing to the scores."""
    if spec.bias is Bias.ELEMENTWISE and spec.family is Family.BATCH_PREFILL:
        why = "batch_prefill kernels add no tensor to the scores"
        yield from wrong("attention_cuda.bias", "bias", spec.bias, why, f"{Bias.NONE}, {Bias.ALIBI}", Bias.ALIBI)


def check_features(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """No kernel drops probabilities, leaves the gradient of a bias, skips short requests or scales 8-bit operands."""
    for field in _NOWHERE:
        if getattr(spec, field):
            yield from wrong("attention_cuda.features", field, True, "no kernel has it", False, False)


def check_page_size(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Batch prefill copies pages by 8 rows or more, the height of a swizzle."""
    part = PAGE_PART
    if spec.family is Family.BATCH_PREFILL and spec.page_size % part:
        why = f"pages are copied by {part} rows or more"
        nearest = max(part, round(spec.page_size / part) * part)
        allowed = f"0 (any of these), multiples of {part}"
        yield from wrong("attention_cuda.page_size", "page_size", spec.page_size, why, allowed, nearest)


RULES = rules("attention_cuda.", (check_family, check_bias, check_features, check_page_size))
"""Every rule of this module, in the order in which violations are listed."""
