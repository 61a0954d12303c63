"""Predicted times of GEMM kernels by kind of device; the dispatcher has them as generated C."""
