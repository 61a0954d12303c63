"""Numbers of AMD convolution kernels that launchers and rules know."""

from __future__ import annotations

HEADER = "kernelwright/hip/convolution/sizes.h"
PREFIX = "kw_hip_conv"

# Work-items per workgroup of the kernel that adds slices up, an element each.
SUM_BLOCK = 256
# Slices of a two-stage kernel.
MAX_SPLIT_K = 1024
