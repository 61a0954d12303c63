"""Measures kernels on the problems of public models, and reports what it found."""
