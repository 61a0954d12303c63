"""Predicted times of norms."""
