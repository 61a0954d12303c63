"""Numbers of AMD attention kernels that launchers and rules know."""

from __future__ import annotations

HEADER = "kernelwright/hip/attention/sizes.h"
PREFIX = "kw_hip_attention"

# Work-items of kernels that run beside others.
BLOCK = 256
# Workgroups along y and z of a grid.
MAX_GRID = 65535
