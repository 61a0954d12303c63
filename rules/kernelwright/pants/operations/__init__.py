"""Kernel targets, one module for each operation; their fields come from the generator's models."""
