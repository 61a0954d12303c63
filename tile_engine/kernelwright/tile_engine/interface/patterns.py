"""Options that select kernels by wildcards over their names."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Named(Protocol):
    """A kernel, built or not."""

    @property
    def name(self) -> str:
        """Its readable name."""


_Kernel = TypeVar("_Kernel", bound=Named)


def pattern_options(command: _Command) -> _Command:
    """``--kernels``, ``--ignore-kernels`` and ``--kernels-file``."""
    options = (
        click.option("--kernels", multiple=True, help="Only kernels whose name matches a pattern such as *_rcr_*."),
        click.option("--ignore-kernels", multiple=True, help="No kernel whose name matches a pattern."),
        click.option("--kernels-file", type=click.Path(path_type=Path), help="A file with one pattern on each line."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@dataclass(frozen=True)
class Patterns:
    """Wildcards over names: ``wanted`` (empty for all) less ``ignored``."""

    wanted: tuple[str, ...]
    ignored: tuple[str, ...]

    @staticmethod
    def of(options: Mapping[str, Any]) -> Patterns:
        """Build from the options of :func:`pattern_options`; skips blank lines and # comments of the file."""
        wanted = list(options["kernels"])
        path: Path | None = options["kernels_file"]
        if path:
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
            listed = [line for line in lines if line and not line.startswith("#")]
            if not listed:
                raise ValueError(f"{path} lists no pattern; write one name or wildcard on each line")
            wanted += listed
        return Patterns(tuple(wanted), tuple(options["ignore_kernels"]))

    def matching(self, kernels: Sequence[_Kernel], where: str) -> list[_Kernel]:
        """Matching kernels, in order. Raises ValueError if there are none; ``where`` says what was searched."""
        matches = [kernel for kernel in kernels if self._match(kernel.name)]
        if not matches:
            names = [kernel.name for kernel in kernels[:5]]
            more = f" and {len(kernels) - 5} more" if len(kernels) > 5 else ""
            raise ValueError(f"none of {where} matches; names: {', '.join(names)}{more}")
        return matches

    def _match(self, name: str) -> bool:
        wanted = not self.wanted or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.wanted)
        return wanted and not any(fnmatch.fnmatchcase(name, pattern) for pattern in self.ignored)
