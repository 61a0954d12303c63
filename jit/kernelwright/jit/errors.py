"""Errors of compiling kernels at run time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from kernelwright.dispatch import KernelwrightError


class JitDisabledError(KernelwrightError):
    """Kernels must be compiled, but ``KERNELWRIGHT_JIT=off`` forbids it; ``missing`` are their names."""

    def __init__(self, arch: str, missing: Sequence[str]) -> None:
        self.arch = arch
        self.missing = tuple(missing)
        listed = "".join(f"\n  {name}" for name in missing)
        super().__init__(
            f"KERNELWRIGHT_JIT=off, but {len(missing)} kernel{'s' * (len(missing) != 1)} for {arch} would have to be "
            f"compiled; build them where compiling is allowed, into the same cache:{listed}"
        )


class ToolchainError(KernelwrightError):
    """A compiler or header tree is not installed, or has another version than kernels are built with."""


class BuildFailedError(KernelwrightError):
    """Some kernels could not be compiled; ``failures`` maps outputs to everything that their command printed."""

    def __init__(self, failures: Mapping[str, str], kernels: int) -> None:
        self.failures = dict(failures)
        listed = "\n\n".join(self.failures.values())
        super().__init__(f"{len(self.failures)} commands failed in a build of {kernels} kernels:\n{listed}")


class UntrustedCacheError(KernelwrightError):
    """Another user could replace files in the cache, and no setting says that this is intended."""

    def __init__(self, cache: Path, reason: str) -> None:
        super().__init__(
            f"no kernel is loaded from the cache {cache}, since others could replace it: {reason}; allowed: folders "
            "and files that only this user and root can write to. Take the permission away (chmod -R go-w), choose "
            "another folder (KERNELWRIGHT_CACHE, cache=, --cache), or, if you trust everyone who can write there, set "
            "KERNELWRIGHT_SHARED_CACHE=on (shared_cache=True, --shared-cache)"
        )


class UnusableCacheError(KernelwrightError):
    """The cache is not a folder, or must be written but is read-only; the message says what to do."""
