"""Formulas that are written once, as Python functions of numbers, and read by the dispatcher as generated C."""
