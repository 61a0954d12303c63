"""Errors of problems, and the base that they share with all errors of ``kernelwright.dispatch``."""

from __future__ import annotations


class KernelwrightError(Exception):
    """Base of every error that this package raises on purpose."""


class ProblemError(KernelwrightError, ValueError):
    """A problem with an illegal size, dtype, layout or leading dimension."""
