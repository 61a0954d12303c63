"""Numbers of NVIDIA convolution kernels that launchers and rules know."""

from __future__ import annotations

HEADER = "kernelwright/cuda/convolution/sizes.h"
PREFIX = "kw_cuda_conv"

# Values that one step of a sum multiplies: 128 bytes, the widest line that TMA swizzles.
STEP = 64
# Outputs side by side of a depthwise kernel's warp.
STRIP = 7
