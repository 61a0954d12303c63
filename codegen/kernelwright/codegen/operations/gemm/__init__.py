"""GEMM: specs, names, rules, sets and templates."""
