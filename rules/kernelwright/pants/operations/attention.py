"""``fmha_kernel``: one kernel of fused attention."""

from __future__ import annotations

from kernelwright.pants.targets.kernel import KernelTarget, kernel_fields


class FmhaKernelTarget(KernelTarget):
    alias = "fmha_kernel"
    op = "attention"
    core_fields = kernel_fields(op)
    help = (
        "One kernel of fused attention. Omitted fields come from the architecture's table of kernels; illegal "
        "combinations are refused."
    )
