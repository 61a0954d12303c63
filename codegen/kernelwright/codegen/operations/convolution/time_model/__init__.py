"""Predicted times of convolutions that need not be built: the dispatcher's formulas, for choosing what to build."""
