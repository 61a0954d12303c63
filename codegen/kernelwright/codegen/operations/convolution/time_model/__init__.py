"""Predicted times of convolutions that need not be built, by the dispatcher's formulas, to choose what to build."""
