"""Pants 2.27 and newer, where rules are called by name."""
