"""The versions of Pants that the plugin runs on."""

from __future__ import annotations

from pants.version import PANTS_SEMVER

LOADED_ON = ("2.17.1", "2.27.0", "2.28.0", "2.29.0", "2.30.0", "2.31.0", "2.32.0", "2.33.0")
"""The versions that the plugin was loaded on; builds ran on the first (docs/compatibility.md)."""

# First and last series of each generation.
_GENERATIONS = (((2, 17), (2, 17)), ((2, 27), (2, 33)))


class UnsupportedPants(ImportError):
    """The plugin does not run on this version of Pants."""


def check(version: str) -> None:
    """Raise UnsupportedPants unless ``version``, such as ``"2.17.1"``, is of a series that the plugin runs on."""
    series = tuple(int(part) for part in version.split(".")[:2])
    if not any(first <= series <= last for first, last in _GENERATIONS):
        raise UnsupportedPants(
            f"kernelwright-pants does not run on Pants {version}; set [GLOBAL].pants_version to 2.17.1 or to a version "
            f"from 2.27 to 2.33 (it was loaded on {', '.join(LOADED_ON)})"
        )


def check_running() -> None:
    """The same for the Pants that runs."""
    check(str(PANTS_SEMVER))
