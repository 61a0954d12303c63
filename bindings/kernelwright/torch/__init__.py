"""Operators of PyTorch that run kernels: autograd, fake tensors and ``torch.compile``, on CPUs and GPUs.

Importing it imports torch and registers the operators in torch's namespace ``kernelwright``.
"""

from kernelwright.torch.adoption.adopt import Adoption, AdoptionError, adopt, release
from kernelwright.torch.adoption.aten import intercept
from kernelwright.torch.dispatchers import DispatcherNotFoundError, forget, use
from kernelwright.torch.fallback.decisions import UnservedError
from kernelwright.torch.fallback.report import report, reset_report
from kernelwright.torch.fallback.strictness import strict
from kernelwright.torch.operator import TransformError
from kernelwright.torch.operators.attention import scaled_dot_product_attention
from kernelwright.torch.operators.attention_varlen import varlen_attn
from kernelwright.torch.operators.convolution import conv1d, conv2d, conv3d
from kernelwright.torch.operators.gemm import gemm, linear

__all__ = [
    "Adoption",
    "AdoptionError",
    "DispatcherNotFoundError",
    "TransformError",
    "UnservedError",
    "adopt",
    "conv1d",
    "conv2d",
    "conv3d",
    "forget",
    "gemm",
    "intercept",
    "linear",
    "release",
    "report",
    "reset_report",
    "scaled_dot_product_attention",
    "strict",
    "use",
    "varlen_attn",
]
