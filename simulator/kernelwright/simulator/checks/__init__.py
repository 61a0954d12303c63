"""Wrappers around steps: the checks on request, traces and breakpoints."""
