"""Predicted times of attention kernels."""
