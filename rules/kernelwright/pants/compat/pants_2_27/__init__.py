"""Pants 2.27 to 2.33, where rules are called by name."""
