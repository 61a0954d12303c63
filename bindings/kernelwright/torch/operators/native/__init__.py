"""Operators on the native road: what it learns of their calls, and gradients of those that it has computed."""
