"""The exit codes of ``kernelwright`` and, through the plugin, of ``./pants`` (docs/exit_codes.md)."""

from __future__ import annotations

EXIT_FAILED = 1
"""A build or a check failed: a compiler, a limit, an interrupted run."""

EXIT_BAD_INPUT = 2
"""An option, target, spec, filter or file cannot be used; nothing was written."""

EXIT_MISMATCH = 3
"""A verification failed: a package or a stored file is not what its digest or statement says."""

EXIT_DEFECT = 4
"""A defect of kernelwright itself."""
