"""``conv_kernel``: one kernel of grouped convolution."""

from __future__ import annotations

from kernelwright.pants.targets.kernel import KernelTarget, kernel_fields


class ConvKernelTarget(KernelTarget):
    alias = "conv_kernel"
    op = "convolution"
    core_fields = kernel_fields(op)
    help = "One convolution kernel. Omitted fields get the architecture's defaults; illegal combinations are refused."
