"""What kernels of norms cannot do on AMD GPUs: nothing but what holds of all GPUs."""

from kernelwright.codegen.operations.norm.constraints.gpu import RULES

__all__ = ["RULES"]
