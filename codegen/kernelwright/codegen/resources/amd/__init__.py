"""Counts of AMD kernels, read in the compiler's assembly."""

MODULE = f"{__name__}.command"
"""Counts a kernel as a command of a plan."""
