"""What can go wrong, one class per thing that a caller may want to handle differently."""

from __future__ import annotations


class TilewrightError(Exception):
    """Base of every error that this package raises on purpose."""


class NativeLibraryError(TilewrightError):
    """libtilewright.so is missing or of another version."""


class LibraryNotFoundError(TilewrightError, FileNotFoundError):
    """No kernel library where one was asked for, or none for this device."""


class ManifestError(TilewrightError, ValueError):
    """manifest.json is missing, not JSON, of another schema, or contradicts its library."""


class DigestMismatchError(TilewrightError):
    """The library's bytes are not those that the manifest describes: truncated, rebuilt or altered."""


class LibraryLoadError(TilewrightError, OSError):
    """The loader refused the library, or it is no kernel library."""


class AbiMismatchError(TilewrightError):
    """The library was built for another ABI version."""


class ArchMismatchError(TilewrightError):
    """The library or kernel is for another architecture than the device."""


class DeviceError(TilewrightError):
    """The device is unknown, absent, or its runtime cannot be loaded."""


class DeviceNameError(DeviceError, ValueError):
    """What was given is no name of a device, whatever this machine has."""


class ProblemError(TilewrightError, ValueError):
    """A problem with an illegal size, dtype, layout or leading dimension."""


class ArrayError(TilewrightError, ValueError):
    """Arrays that do not fit together, or whose memory a kernel cannot address."""


class SelectionError(TilewrightError, ValueError):
    """An unknown selection, kernel name or priority."""


class NoKernelError(TilewrightError, LookupError):
    """No kernel of the dispatcher serves the problem; the text says why not."""


class LaunchError(TilewrightError, RuntimeError):
    """The kernel was started and failed, or its runtime refused it."""
