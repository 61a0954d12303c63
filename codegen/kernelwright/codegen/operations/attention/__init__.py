"""Fused attention: so far only the rules about kernels that are known to be wrong."""
