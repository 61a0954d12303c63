# Written by public_test.py from the modules of operators.
from kernelwright.torch.operators.attention import scaled_dot_product_attention
from kernelwright.torch.operators.attention_varlen import varlen_attn
from kernelwright.torch.operators.convolution import conv1d, conv2d, conv3d
from kernelwright.torch.operators.gemm import gemm, linear
from kernelwright.torch.operators.norm import layer_norm, rms_norm

MODULES: dict[str, str]
__all__ = [
    "conv1d",
    "conv2d",
    "conv3d",
    "gemm",
    "layer_norm",
    "linear",
    "rms_norm",
    "scaled_dot_product_attention",
    "varlen_attn",
]
