"""Predicted times of attention that needs not be built: the dispatcher's formulas, for choosing what to build."""
