"""Kernel libraries on disk: found, verified against their manifest and statement, then loaded."""
