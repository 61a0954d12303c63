"""Predicted times of attention kernels that are not built, by the dispatcher's formulas, to choose what to build."""
