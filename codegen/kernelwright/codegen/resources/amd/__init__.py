"""Counts of AMD kernels, read from the compiler's assembly."""

MODULE = f"{__name__}.command"
"""The module that counts a kernel, run as a command of a plan."""
