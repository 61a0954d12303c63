"""Errors of this package: one class for each failure that callers may want to handle in their own way."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.problems.errors import KernelwrightError as KernelwrightError
from kernelwright.problems.errors import ProblemError as ProblemError


class NativeLibraryError(KernelwrightError):
    """libkernelwright.so is missing or of another version."""


class LibraryNotFoundError(KernelwrightError, FileNotFoundError):
    """The path holds no kernel library, or none for the device."""


class ManifestError(KernelwrightError, ValueError):
    """manifest.json is missing, not JSON, of another schema, or contradicts its library."""


class DigestMismatchError(KernelwrightError):
    """The library is not the file that its manifest describes: it was truncated, rebuilt or altered."""


class LibraryLoadError(KernelwrightError, OSError):
    """The dynamic loader refuses the library, or the file is no kernel library."""


class AbiMismatchError(KernelwrightError):
    """The library was built for another ABI version."""


class ArchMismatchError(KernelwrightError):
    """The library or kernel is for another architecture than the device."""


class DeviceError(KernelwrightError):
    """The device is unknown, absent, or its runtime cannot be loaded."""


class DeviceNameError(DeviceError, ValueError):
    """The text names no device, on any machine."""


class ArrayError(KernelwrightError, ValueError):
    """Arrays that do not fit together, or that a kernel cannot address."""


class TraceError(KernelwrightError, ValueError):
    """The file is no trace of recorded problems, or not of this version."""


class SelectionError(KernelwrightError, ValueError):
    """An unknown selection, kernel name or priority."""


class NoKernelError(KernelwrightError, LookupError):
    """No kernel of the dispatcher serves the problem.

    :ivar reason: one line: what was asked, and why kernels refuse it.
    :ivar advice: lines on what to do: the nearest kernel, and what makes one. ``str()`` is the reason and these.
    """

    def __init__(self, reason: str = "", *advice: str, later: Callable[[], tuple[str, ...]] | None = None) -> None:
        """``later`` makes the advice when somebody reads it: programs that go on without a kernel do not pay for it."""
        super().__init__(reason)
        self.reason = reason
        self._advice = advice
        self._later = later

    @property
    def advice(self) -> tuple[str, ...]:
        """What :meth:`__init__` was given."""
        if self._later is not None:
            self._advice, self._later = self._later(), None
        return self._advice

    def __reduce__(self) -> tuple[type[NoKernelError], tuple[str, ...]]:
        """As texts: other processes have no dispatcher to ask."""
        return type(self), (self.reason, *self.advice)

    def __str__(self) -> str:
        """The reason, then a line for each piece of advice."""
        return "\n".join((self.reason, *self.advice))


class LaunchError(KernelwrightError, RuntimeError):
    """The kernel failed, or its runtime refused the launch."""
