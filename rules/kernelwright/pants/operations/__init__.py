"""The kernel targets, one module for each operation."""
