"""The operations whose calls :class:`kernelwright.dispatch.Dispatcher` offers.

Type checkers and editors read ``operation_methods.pyi``, which a test writes from :data:`OPERATIONS`.
"""

from __future__ import annotations

import importlib
from typing import Any

from kernelwright.dispatch.core.native_dispatcher import Methods
from kernelwright.dispatch.core.plan import OperationPlan

OPERATIONS = ("gemm", "convolution", "attention", "norm")
"""Folders of ``operations``. Each registers its problems and defines ``Methods``; a new operation adds a word here."""

_METHODS = [importlib.import_module(f"kernelwright.dispatch.operations.{name}").Methods for name in OPERATIONS]


class OperationMethods(*_METHODS, Methods):  # type: ignore[misc]
    """The calls of every operation, and the plan of any problem."""

    def plan(self, problem: Any) -> OperationPlan[Any]:
        """Return the plan for a problem of any operation: the selected kernel, ready to launch.

        Equal problems get the same plan while it is among the 2048 plans used last.

        :raises NoKernelError: if no kernel serves the problem; the message says why.
        """
        return self._core.plan(problem)
