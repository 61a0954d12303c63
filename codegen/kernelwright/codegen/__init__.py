"""Kernels as data: from specs to names, headers, and the commands that build libraries."""
