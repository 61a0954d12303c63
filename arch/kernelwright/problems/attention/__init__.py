"""Attention: its description."""
