"""Counts of AMD kernels, read in the compiler's assembly."""
