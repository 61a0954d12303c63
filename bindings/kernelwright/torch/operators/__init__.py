"""The operators: a module for each operation, with its public functions."""
