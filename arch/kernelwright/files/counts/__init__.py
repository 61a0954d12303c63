"""Counts of AMD code: instructions by class and width, loops, matrix clocks, LDS bank conflicts."""
