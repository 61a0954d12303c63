"""Measure kernels on the problems of public models, and report the results."""
