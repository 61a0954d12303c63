"""Exit codes of Pants for errors of this plugin, as those of the command ``kernelwright`` (docs/exit_codes.md).

Pants ends with 1 for every exception. :func:`install` makes it end with the code of a rule's exception.
"""

from __future__ import annotations

import logging
from functools import wraps
from typing import Any, Callable, Iterable, Tuple

from pants.bin.local_pants_runner import LocalPantsRunner
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.target import InvalidFieldException, InvalidTargetException

FAILED, BAD_INPUT, MISMATCH, DEFECT = 1, 2, 3, 4

logger = logging.getLogger(__name__)


class BadInput(Exception):
    """Targets, options or files that cannot be used; the message says what is allowed."""

    exit_code = BAD_INPUT


def exit_code(errors: Iterable[BaseException]) -> int:
    """Return the code for the errors of one run: the largest; errors of other plugins and of Pants count as 1.

    Fields and targets that Pants itself refuses are bad input, whichever plugin they belong to.
    """
    return max((_code(error) for error in errors), default=FAILED)


def _code(error: BaseException) -> int:
    if isinstance(error, (InvalidFieldException, InvalidTargetException)):
        return BAD_INPUT
    code = getattr(error, "exit_code", FAILED)
    return code if isinstance(code, int) and code > 0 else FAILED


def install() -> None:
    """Make goals of this process end with these codes; does nothing if that was done before."""
    run = LocalPantsRunner._perform_run
    if not hasattr(run, "__wrapped__"):
        LocalPantsRunner._perform_run = _with_codes(run)  # type: ignore[assignment,method-assign]


def _with_codes(run: Callable[[Any, Tuple[str, ...]], int]) -> Callable[[Any, Tuple[str, ...]], int]:
    @wraps(run)
    def perform(self: Any, goals: Tuple[str, ...]) -> int:
        try:
            return run(self, goals)
        except ExecutionError as error:
            logger.error(error)  # as Pants does before it ends with 1
            return exit_code(error.wrapped_exceptions)

    return perform
