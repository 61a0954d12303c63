"""``gemm_kernel``: one GEMM kernel."""

from __future__ import annotations

from kernelwright.pants.targets.kernel import KernelTarget, kernel_fields


class GemmKernelTarget(KernelTarget):
    alias = "gemm_kernel"
    op = "gemm"
    core_fields = kernel_fields(op)
    help = "One GEMM kernel. Omitted fields get the architecture's defaults; illegal combinations are refused."
