"""Enumerate the kernels that a trait configuration of the tile engine describes."""
