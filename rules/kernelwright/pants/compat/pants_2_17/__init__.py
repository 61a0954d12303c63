"""Pants 2.17, where rules are asked for by type: calls by name become such requests."""
