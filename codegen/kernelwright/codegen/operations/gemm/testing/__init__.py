"""For tests of GEMM, not shipped: strategies that draw specs."""
