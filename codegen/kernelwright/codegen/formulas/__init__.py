"""Formulas written once, as Python functions of numbers, and compiled into the dispatcher as generated C."""
