"""Pants 2.17, where rules are requested by type: calls by name become such requests."""
