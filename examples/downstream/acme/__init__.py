"""A program with kernels of its own."""
