"""The state of a running kernel: registers, LDS, scratch, global memory, barriers, floating-point modes."""
