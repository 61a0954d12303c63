"""Wrappers around steps: the optional checks, traces and breakpoints."""
