"""Code for tests only."""
