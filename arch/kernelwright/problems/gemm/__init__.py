"""GEMM and grouped GEMM: their description and their problems."""
