"""The exit codes of ``kernelwright`` and, through the plugin, of ``./pants`` (docs/exit_codes.md)."""

from __future__ import annotations

import errno

EXIT_FAILED = 1
"""A build or a check failed: a compiler, a limit, an interrupted run."""

EXIT_BAD_INPUT = 2
"""An option, target, spec, filter or file cannot be used; nothing was written."""

EXIT_MISMATCH = 3
"""A verification failed: a package or a stored file is not what its digest or statement says."""

EXIT_DEFECT = 4
"""A defect of kernelwright itself."""

_OF_THE_INPUT = frozenset(
    (
        *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENOTEMPTY, errno.ELOOP, errno.ENAMETOOLONG),
        *(errno.EACCES, errno.EPERM, errno.EROFS, errno.EINVAL),
    )
)


def of_os_error(error: OSError) -> int:
    """EXIT_BAD_INPUT where another path or its permissions would help; EXIT_FAILED for a full disk and its like."""
    return EXIT_BAD_INPUT if error.errno in _OF_THE_INPUT or error.errno is None else EXIT_FAILED
