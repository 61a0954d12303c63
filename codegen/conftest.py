"""Keeps a part of each long-running test family in the default tier."""

from tiers import pytest_collection_modifyitems, pytest_configure

__all__ = ["pytest_collection_modifyitems", "pytest_configure"]
