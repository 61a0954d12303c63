"""What can go wrong, one class per thing that a caller may want to handle differently."""

from __future__ import annotations


class KernelwrightError(Exception):
    """Base of every error that this package raises on purpose."""


class NativeLibraryError(KernelwrightError):
    """libkernelwright.so is missing or of another version."""


class LibraryNotFoundError(KernelwrightError, FileNotFoundError):
    """No kernel library where one was asked for, or none for this device."""


class ManifestError(KernelwrightError, ValueError):
    """manifest.json is missing, not JSON, of another schema, or contradicts its library."""


class DigestMismatchError(KernelwrightError):
    """The library's bytes are not those that the manifest describes: truncated, rebuilt or altered."""


class LibraryLoadError(KernelwrightError, OSError):
    """The loader refused the library, or it is no kernel library."""


class AbiMismatchError(KernelwrightError):
    """The library was built for another ABI version."""


class ArchMismatchError(KernelwrightError):
    """The library or kernel is for another architecture than the device."""


class DeviceError(KernelwrightError):
    """The device is unknown, absent, or its runtime cannot be loaded."""


class DeviceNameError(DeviceError, ValueError):
    """What was given is no name of a device, whatever this machine has."""


class ProblemError(KernelwrightError, ValueError):
    """A problem with an illegal size, dtype, layout or leading dimension."""


class ArrayError(KernelwrightError, ValueError):
    """Arrays that do not fit together, or whose memory a kernel cannot address."""


class SelectionError(KernelwrightError, ValueError):
    """An unknown selection, kernel name or priority."""


class NoKernelError(KernelwrightError, LookupError):
    """No kernel of the dispatcher serves the problem; the text says why not."""


class LaunchError(KernelwrightError, RuntimeError):
    """The kernel was started and failed, or its runtime refused it."""
