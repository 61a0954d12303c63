"""Arrays of NumPy, torch, CuPy, JAX and other DLPack producers, viewed without a copy and without an import."""
