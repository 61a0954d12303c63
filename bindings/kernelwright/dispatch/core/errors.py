"""Errors of this package: one class for each failure that callers may want to handle separately."""

from __future__ import annotations

from collections.abc import Callable

from kernelwright.problems.errors import KernelwrightError as KernelwrightError
from kernelwright.problems.errors import ProblemError as ProblemError


class NativeLibraryError(KernelwrightError):
    """libkernelwright.so is missing or has another version."""


class LibraryNotFoundError(KernelwrightError, FileNotFoundError):
    """The path holds no kernel library, or none for the device."""


class ManifestError(KernelwrightError, ValueError):
    """manifest.json is missing, not JSON, of another schema, or contradicts its library."""


class DigestMismatchError(KernelwrightError):
    """The library is not the file that its manifest describes: it was truncated, rebuilt or altered."""


class LibraryLoadError(KernelwrightError, OSError):
    """The dynamic loader refuses the library, or the file is not a kernel library."""


class AbiMismatchError(KernelwrightError):
    """The library was built for another ABI version."""


class ArchMismatchError(KernelwrightError):
    """The library or kernel targets another architecture than the device's."""


class DeviceError(KernelwrightError):
    """The device is unknown, absent, or its runtime cannot be loaded."""


class DeviceNameError(DeviceError, ValueError):
    """The text names no device of any machine."""


class ArrayError(KernelwrightError, ValueError):
    """Arrays do not fit together, or a kernel cannot address them."""


class TraceError(KernelwrightError, ValueError):
    """The file is not a trace of recorded problems, or has another version."""


class SelectionError(KernelwrightError, ValueError):
    """Unknown selection, kernel name or priority."""


class NoKernelError(KernelwrightError, LookupError):
    """No kernel of the dispatcher serves the problem.

    :ivar reason: one line: the request, and why the nearest kernel refuses it.
    :ivar advice: lines on what to do: the nearest kernel, and how to build one. ``str()`` is the reason and these
        lines.
    """

    def __init__(self, reason: str = "", *advice: str, later: Callable[[], tuple[str, ...]] | None = None) -> None:
        """``later`` makes the reason and the advice when they are read: programs that go on do not pay for them."""
        super().__init__(reason)
        self._lines = (reason, *advice)
        self._later = later

    def _read(self) -> tuple[str, ...]:
        later = self._later
        if later is not None:  # another thread may read them too, which does no harm
            self._lines, self._later = later(), None
        return self._lines

    @property
    def reason(self) -> str:
        """The first line, see :meth:`__init__`."""
        return self._read()[0]

    @property
    def advice(self) -> tuple[str, ...]:
        """Lines of advice, see :meth:`__init__`."""
        return self._read()[1:]

    def __reduce__(self) -> tuple[type[NoKernelError], tuple[str, ...]]:
        """Pickle as texts: other processes have no dispatcher to ask."""
        return type(self), self._read()

    def __str__(self) -> str:
        """The reason, then a line for each piece of advice."""
        return "\n".join(self._read())


class LaunchError(KernelwrightError, RuntimeError):
    """The kernel failed, or its runtime refused the launch."""
