"""Counts of code objects and of launches: instructions by class and width, matrix cycles, LDS bank conflicts."""
