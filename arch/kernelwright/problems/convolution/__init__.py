"""Grouped convolution: its description and its problems."""
