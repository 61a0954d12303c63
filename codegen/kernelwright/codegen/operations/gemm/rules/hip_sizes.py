"""Numbers of AMD GEMM kernels that launchers and rules know."""

from __future__ import annotations

HEADER = "kernelwright/hip/gemm/sizes.h"
PREFIX = "kw_hip"

# Slices of K that the second kernel adds up at most.
MAX_SPLIT_K = 1024
