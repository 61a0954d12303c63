"""Scalar instructions: arithmetic, comparisons, modes, branches and barriers."""
