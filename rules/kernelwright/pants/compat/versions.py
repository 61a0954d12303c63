"""The versions of Pants that the plugin runs on."""

from __future__ import annotations

import contextlib
import logging
from typing import Iterator

from pants.version import PANTS_SEMVER

EXECUTED_ON = ("2.17.1", "2.31.0", "2.33.0", "2.34.0.dev3")
"""The versions on which help, listing, checks, builds and measurements ran (docs/compatibility.md)."""
LOADED_ON = ("2.27.0", "2.28.0", "2.29.0", "2.30.0", "2.32.0")
"""Further versions whose sources accept the plugin's imports, types and rules."""

REPORTS = "the project's issues"
REFUSED = ("2.18", "2.26")
"""The first and the last series between the two generations of rules."""

logger = logging.getLogger(__name__)


class UnsupportedPants(ImportError):
    """The plugin does not run on this version of Pants."""


def check(version: str) -> None:
    """Raise UnsupportedPants where the plugin is known to fail; warn about a series newer than all tested ones.

    :param version: such as ``"2.17.1"``.
    """
    series = _series(version)
    if series < _series(EXECUTED_ON[0]) or _series(REFUSED[0]) <= series <= _series(REFUSED[1]):
        raise UnsupportedPants(
            f"kernelwright-pants does not run on Pants {version}, {_why(series)}; set [GLOBAL].pants_version to 2.17.1 "
            f"or to 2.27 or newer (builds ran on {', '.join(EXECUTED_ON)})"
        )
    if series > _series(EXECUTED_ON[-1]):
        logger.warning(
            f"kernelwright-pants was not tested on Pants {version}; the newest version that builds ran on is "
            f"{EXECUTED_ON[-1]}. Please report what fails to {REPORTS}."
        )


def check_running() -> None:
    """The same for the running Pants."""
    check(str(PANTS_SEMVER))


@contextlib.contextmanager
def named() -> Iterator[None]:
    """Name the version of Pants first when an import in the block fails; the error follows with its traceback."""
    try:
        yield
    except UnsupportedPants:
        raise
    except ImportError as error:
        raise UnsupportedPants(
            f"kernelwright-pants does not load on Pants {PANTS_SEMVER}: {error}; set [GLOBAL].pants_version to one "
            f"that builds ran on ({', '.join(EXECUTED_ON)}), and report it to {REPORTS}"
        ) from error


def _series(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _why(series: tuple[int, ...]) -> str:
    if series < _series(EXECUTED_ON[0]):
        return "which lacks rules that it calls"
    return "whose rules are neither those of 2.17 nor those that are called by name as of 2.27"
