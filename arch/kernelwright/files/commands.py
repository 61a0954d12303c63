"""What the command lines share: messages of files that cannot be used, and of packages that are not installed."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from kernelwright.files.proposals import closest

_NEXT = {
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "name a folder where a file was named",
    errno.EISDIR: "name a file, not a folder",
    errno.EEXIST: "remove it or name another path",
    errno.ENOTEMPTY: "empty it or name another folder",
    errno.EACCES: "change its permissions or name another path",
    errno.EPERM: "change its permissions or name another path",
    errno.EROFS: "name a path on a file system that can be written to",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.ENOSPC: "free some space or name a path on another disk",
    errno.EDQUOT: "free some space or name a path on another disk",
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
}


_OF_THE_INPUT = frozenset(_NEXT) - {errno.ENOSPC, errno.EDQUOT, errno.EMFILE} | {errno.ELOOP, errno.EINVAL}


def os_error_code(error: OSError) -> int:
    """An exit code: 2 where another path or its permissions would help; 1 for a full disk and its like."""
    return 2 if error.errno in _OF_THE_INPUT or error.errno is None else 1


def os_error_text(error: OSError) -> str:
    """The file, the reason and the next step if one is known: ``'x': No such file or directory; check the path``."""
    if error.strerror is None:  # raised with a sentence of its own
        return str(error)
    name = "" if error.filename is None else f"{os.fsdecode(error.filename)!r}: "
    hint = _NEXT.get(error.errno or 0)
    return f"{name}{error.strerror}{f'; {hint}' if hint else ''}"


class ArgumentParser(argparse.ArgumentParser):
    """Proposes the closest option where one is misspelt; takes no option by its first letters."""

    def __init__(self, prog: str, description: str | None = None, **others: Any) -> None:
        super().__init__(prog, description=description, allow_abbrev=False, **others)
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """See the base class; remembers the words, which errors look at."""
        self._given = tuple(sys.argv[1:] if args is None else args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """End the program with 2; a misspelt option comes before whatever else is wrong."""
        for word in self._given:
            option = word.partition("=")[0]
            near = closest(option, self._option_string_actions) if option not in self._option_string_actions else ""
            if near and word.startswith("--"):
                message = f"there is no {option}{near}"
                break
        super().error(message)


def run_module(module: str, extra: str) -> int:
    """Run ``main`` of a module whose packages come with an extra of the wheel; 2 without them."""
    try:
        command = importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = ".".join(module.split(".")[:2])
        print(f"error: {package} needs the package {error.name}; pip install 'kernelwright[{extra}]'", file=sys.stderr)
        return 2
    code: int = command.main()
    return code
