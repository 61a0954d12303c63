"""Operators on the native road: what it learns of their calls, and gradients of results it has computed."""
