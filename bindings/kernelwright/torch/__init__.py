"""Operators of PyTorch that run kernels: autograd, fake tensors and ``torch.compile``, on CPUs and GPUs.

Importing it imports torch and registers the operators in torch's namespace ``kernelwright``.
"""

from kernelwright.torch.dispatchers import DispatcherNotFoundError, forget, use
from kernelwright.torch.operators.attention import scaled_dot_product_attention
from kernelwright.torch.operators.attention_varlen import varlen_attn
from kernelwright.torch.operators.convolution import conv2d, conv3d
from kernelwright.torch.operators.gemm import gemm, linear

__all__ = [
    "DispatcherNotFoundError",
    "conv2d",
    "conv3d",
    "forget",
    "gemm",
    "linear",
    "scaled_dot_product_attention",
    "use",
    "varlen_attn",
]
