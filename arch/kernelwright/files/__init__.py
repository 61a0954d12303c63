"""Bounded readers for files written by others, and architecture files; needs nothing but the standard library."""
