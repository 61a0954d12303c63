"""Attention: its description and its problems."""
