"""Shared test code of convolution."""
