"""Converts traits, problems and architectures to the arguments of the time formulas."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Device
from kernelwright.codegen.operations.attention.formulas import times
from kernelwright.codegen.operations.attention.rules.checks import mask_kind
from kernelwright.codegen.operations.attention.time_model.problem import Stage, TimedProblem
from kernelwright.codegen.operations.attention.time_model.serves import problem_of as rules_problem
from kernelwright.codegen.operations.attention.time_model.traits import Described
from kernelwright.problems.shared import ITEM_BYTES

_FORMULAS = {
    Stage.PART: times.part,
    Stage.DQ_DK_DV: times.gradients,
    Stage.DOT: times.dot,
    Stage.COMBINE: times.combine,
    Stage.CONVERT_DQ: times.convert,
}


def estimate(k: Described, p: TimedProblem, arch: Arch, units: int) -> float:
    """Return the predicted time of a stage on ``units`` compute units."""
    spare = mask_kind(rules_problem(p)) not in k.traits.masks
    return _FORMULAS[p.main](problem_of(p), kernel_of(k, arch, spare), _device(k, p.whole.dtype, arch, units)).total_us


def splits_that_fill(k: Described, p: TimedProblem, arch: Arch, units: int) -> int:
    """Return the most splits whose blocks all run at once; 0 if there are more blocks even without splits."""
    kernel, device = kernel_of(k, arch, False), _device(k, p.whole.dtype, arch, units)
    return int(times.splits_that_fill(problem_of(p), kernel, device))


def moved(k: Described, elements: int, dtype: str, arch: Arch, units: int) -> float:
    """Return the predicted time of an append of ``elements`` elements."""
    kernel = kernel_of(k, arch, False)
    return times.append(elements, ITEM_BYTES[dtype], kernel, device_of(arch, dtype, units)).total_us


def problem_of(stage: TimedProblem) -> times.Problem:
    """The problem as formulas read it: a typical request."""
    p, requests = stage.whole, max(stage.whole.batch, 1)
    queries, keys = p.total_q / requests if p.group else p.seqlen_q, p.total_k / requests or p.seqlen_k
    size_q, size_kv, size_o = (ITEM_BYTES[one] for one in (p.dtype, p.dtype_kv, p.dtype_o))
    assert p.hdim_v is not None and p.window is not None
    return times.Problem(
        requests, p.heads_q, p.heads_kv, queries, keys, p.hdim_q, p.hdim_v, size_q, size_kv, size_o,
        p.mask != "none", p.mask == "bottom_right", *p.window, p.group, max(stage.num_splits, 1), stage.leaves_splits,
        stage.dq_slices,
    )  # fmt: skip


def kernel_of(k: Described, arch: Arch, spare_mask: bool) -> times.Kernel:
    """The kernel as formulas read it."""
    t = k.traits
    return times.Kernel(
        arch.time_model == "processors", arch.time_model == "hopper", t.tile_m0, t.tile_n0, t.hdim_q, t.hdim_v,
        max(1, t.blocks_per_cu), t.packs_heads != 0, spare_mask, t.work_percent / 100.0 if t.work_percent else 1.0,
        t.selection_rank,
    )  # fmt: skip


def _device(k: Described, dtype: str, arch: Arch, units: int) -> Device:
    """The device: CPU kernels multiply in fp32, except those with dot products, which are assumed to be fast."""
    return device_of(arch, dtype if arch.time_model != "processors" else "bf16" if k.dots else "fp32", units)
