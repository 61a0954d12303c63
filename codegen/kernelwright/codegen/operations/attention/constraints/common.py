"""Rules that hold for every attention kernel: what architecture files list, which features exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention.arch_section import attention_section, hdim_distance
from kernelwright.codegen.operations.attention.constraints import families, tiles
from kernelwright.codegen.operations.attention.constraints.report import one_of, wrong
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Family,
    Mask,
    OperandTypes,
    Pipeline,
    QScale,
    VLayout,
)
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import Violation, rules

_TRLOAD = (Pipeline.QR_ASYNC_TRLOAD, Pipeline.QR_ASYNC_TRLOAD_V3)
_V3 = (Pipeline.V3, Pipeline.QR_ASYNC_TRLOAD_V3)
_BWD_DTYPES = (OperandTypes.FP32, OperandTypes.FP16, OperandTypes.BF16)
_EIGHT_BITS = frozenset(OperandTypes) - set(_BWD_DTYPES)
_MLA = (192, 128)


def check_dtype(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """The architecture's kernels compute with some data types only."""
    allowed = attention_section(arch).dtypes
    if spec.dtype not in allowed:
        yield from one_of("attention.dtype", "dtype", spec.dtype, allowed, f"{arch.name} has no kernel for these types")


def check_bwd_dtype(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """The backward pass is computed in fp32, fp16 and bf16: there are no gradients of 8-bit operands."""
    if spec.family.backward and spec.dtype not in _BWD_DTYPES:
        why = "the backward pass has no kernel for 8-bit operands"
        yield from one_of("attention.bwd_dtype", "dtype", spec.dtype, _BWD_DTYPES, why)


def check_family(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Some architectures lack a family."""
    section = attention_section(arch)
    if spec.family not in section.families:
        allowed = [family for family in Family if family in section.families]
        yield from one_of("attention.family", "family", spec.family, allowed, f"{arch.name} has no such kernel")


def check_pipeline(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A pipeline must exist on the architecture, for the family."""
    section = attention_section(arch)
    if spec.family not in section.pipelines.get(spec.pipeline, ()):
        why = f"{arch.name} computes {spec.family} in other ways"
        allowed = section.pipelines_of(spec.family) or tuple(section.pipelines)
        yield from one_of("attention.pipeline", "pipeline", spec.pipeline, allowed, why)


def check_v3(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Pipelines v3 need loads of 16 bytes straight into LDS and transposing reads."""
    if spec.pipeline in _V3 and not (arch.wide_direct_lds_loads and arch.lds_transposing_loads):
        allowed = attention_section(arch).pipelines_of(spec.family)
        why = f"{arch.name} has no loads of 16 bytes straight into LDS"
        yield from one_of("attention.v3", "pipeline", spec.pipeline, allowed, why)


def check_trload(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Only some architectures transpose operands as they are read from LDS."""
    if not arch.lds_transposing_loads:
        if spec.pipeline in _TRLOAD:
            allowed = attention_section(arch).pipelines_of(spec.family)
            why = f"{arch.name} cannot transpose what it reads from LDS"
            yield from one_of("attention.trload", "pipeline", spec.pipeline, allowed, why)
        if spec.trload:
            why = f"{arch.name} cannot transpose what it reads from LDS"
            yield from wrong("attention.trload", "trload", True, why, False, False)


def check_trload_pipeline(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Whether a forward kernel transposes what it reads from LDS follows from its pipeline."""
    if spec.family is Family.FWD and spec.trload != (spec.pipeline in _TRLOAD):
        needed = spec.pipeline in _TRLOAD
        why = f"pipeline {spec.pipeline} {'always' if needed else 'never'} reads LDS so"
        yield from wrong("attention.trload_pipeline", "trload", spec.trload, why, needed, needed)


def check_hdim(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Kernels exist for pairs of head dimensions; with padding they serve smaller ones."""
    section = attention_section(arch)
    pairs = section.hdim_sets.get(spec.dtype)
    pair = (spec.hdim_q, spec.hdim_v)
    if pairs and pair not in pairs:
        listed = section.hdims[spec.dtype]
        nearest = min(listed, key=lambda item: hdim_distance(pair, item))
        allowed = ", ".join(f"{q}x{v}" for q, v in listed)
        why = "kernels exist for these pairs; a padded kernel serves smaller head dimensions"
        yield from wrong(
            "attention.hdim", "hdim_q, hdim_v", f"{pair[0]}x{pair[1]}", why, allowed, f"{nearest[0]}x{nearest[1]}"
        )


def check_hdim_multiple(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Head dimensions are multiples of 8: rows are read in vectors of 16 bytes."""
    for field, value in (("hdim_q", spec.hdim_q), ("hdim_v", spec.hdim_v)):
        if value % 8:
            why = "rows are read in vectors of 16 bytes"
            yield from wrong("attention.hdim_multiple", field, value, why, "multiples of 8", -(-value // 8) * 8)


def check_hdim_192_128(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Head dimensions 192 and 128 belong to the prefill of latent attention: no bias, no dropout."""
    if (spec.hdim_q, spec.hdim_v) == _MLA:
        why = "these head dimensions belong to the prefill of latent attention, which has neither bias nor dropout"
        if spec.bias is not Bias.NONE:
            yield from wrong("attention.hdim_192_128", "bias", spec.bias, why, Bias.NONE, Bias.NONE)
        if spec.dropout:
            yield from wrong("attention.hdim_192_128", "dropout", True, why, False, False)


def check_soft_cap_bias(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Capped scores have no bias: the cap would apply before or after it, and kernels differ in that."""
    if spec.logits_soft_cap and spec.bias is not Bias.NONE:
        why = "no kernel both caps scores and adds a bias"
        yield from wrong("attention.soft_cap_bias", "logits_soft_cap, bias", spec.bias, why, "one of them", Bias.NONE)


def check_trload_hdim(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Pipelines that transpose on reading, and v3, exist for head dimensions 64 and 128, the same for Q and V."""
    if spec.family is not Family.FWD or spec.pipeline not in (*_TRLOAD, *_V3):
        return
    if (spec.hdim_q, spec.hdim_v) not in ((64, 64), (128, 128)):
        nearest = "64x64" if spec.hdim_q < 96 else "128x128"
        why = f"pipeline {spec.pipeline} exists for two head dimensions"
        pair = f"{spec.hdim_q}x{spec.hdim_v}"
        yield from wrong("attention.trload_hdim", "hdim_q, hdim_v, pipeline", pair, why, "64x64, 128x128", nearest)


def check_mask(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Where one kernel serves every mask, there is no second one for causal masks."""
    allowed = attention_section(arch).masks
    if spec.mask not in allowed:
        why = f"on {arch.name} generic kernels serve causal masks too: a window without an edge on the left"
        nearest = Mask.GENERIC if Mask.GENERIC in allowed else allowed[0]
        yield from wrong("attention.mask", "mask", spec.mask, why, ", ".join(allowed), nearest)


def check_group_padding(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """In group mode each request has its own lengths, so that both need padding."""
    if spec.group and not (spec.pad.s and spec.pad.sk):
        for field, padded in (("pad.s", spec.pad.s), ("pad.sk", spec.pad.sk)):
            if not padded:
                why = "requests of a group have lengths of their own, which are no multiple of the tile"
                yield from wrong("attention.group_padding", field, False, why, True, True)


def check_block_per_cu(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """At least one workgroup runs on a compute unit; -1 leaves the number to the pipeline."""
    if spec.block_per_cu == 0:
        yield from wrong("attention.block_per_cu", "block_per_cu", 0, "no workgroup would run", "-1, 1, 2, …", 1)


def check_num_wave_groups(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Waves take turns in two groups in the pipelines v3, and nowhere else."""
    most = 2 if spec.pipeline in _V3 else 1
    if not 1 <= spec.num_wave_groups <= most:
        why = f"pipeline {spec.pipeline} has at most {most} wave groups"
        allowed = " or ".join(map(str, range(1, most + 1)))
        yield from wrong("attention.num_wave_groups", "num_wave_groups", spec.num_wave_groups, why, allowed, most)


def check_v_layout(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """V is row-major: its head dimension is contiguous. No kernel was proven for the other order."""
    if spec.v_layout is not VLayout.ROW:
        why = "kernels read V with a contiguous head dimension"
        yield from wrong("attention.v_layout", "v_layout", spec.v_layout, why, VLayout.ROW, VLayout.ROW)


def check_quantised(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Scales belong to 8-bit operands."""
    if spec.dtype in _EIGHT_BITS:
        return
    why = f"{spec.dtype} operands have no scales"
    if spec.qscale is not QScale.NONE:
        yield from wrong("attention.quantised", "qscale", spec.qscale, why, QScale.NONE, QScale.NONE)
    if spec.static_quant:
        yield from wrong("attention.quantised", "static_quant", True, why, False, False)


CHECKS = (
    check_dtype,
    check_bwd_dtype,
    check_family,
    check_pipeline,
    check_v3,
    check_trload,
    check_trload_pipeline,
    check_hdim,
    check_hdim_multiple,
    check_hdim_192_128,
    check_soft_cap_bias,
    check_trload_hdim,
    check_mask,
    check_group_padding,
    check_block_per_cu,
    check_num_wave_groups,
    check_v_layout,
    check_quantised,
)
"""Every check of this module, in the order in which violations are listed."""

RULES = rules("attention.", (*CHECKS, *families.CHECKS, *tiles.CHECKS))
"""Every rule that asks nothing of a backend, in the order in which violations are listed."""
