"""What norm kernels cannot do on NVIDIA GPUs: nothing beyond what holds for all GPUs."""

from kernelwright.codegen.operations.norm.constraints.gpu import RULES

__all__ = ["RULES"]
