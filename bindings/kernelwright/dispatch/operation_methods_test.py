"""``operation_methods.pyi`` is what the operations say: their calls, and which plan each of their problems has.

After a change, write it anew: ``PYTHONPATH=bindings python bindings/kernelwright/dispatch/operation_methods_test.py``.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from kernelwright.dispatch import Dispatcher
from kernelwright.dispatch.core import operation
from kernelwright.dispatch.operation_methods import OPERATIONS

STUB = Path(__file__).with_name("operation_methods.pyi")
_PACKAGE = "kernelwright.dispatch.operations"
_HEAD = """# Written by operation_methods_test.py from the registered operations.
from typing import Any, overload

from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.core.plan import OperationPlan
"""


def stub() -> str:
    """The text of the file."""
    methods = [importlib.import_module(f"{_PACKAGE}.{name}").Methods for name in OPERATIONS]
    registered = ((kind, one.plan) for kind, one in operation._BY_PROBLEM.items())
    plans = {kind: plan for kind, plan in registered if plan.__module__.startswith(f"{_PACKAGE}.")}
    names: dict[str, set[str]] = {}
    for kind in (*methods, *plans, *plans.values()):
        names.setdefault(kind.__module__, set()).add(kind.__name__)
    imports = [f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)]
    pairs = sorted((kind.__name__, plan.__name__) for kind, plan in plans.items())
    overloads = [
        f"    @overload\n    def plan(self, problem: {problem}) -> {plan}: ..."
        for problem, plan in (*pairs, ("Problem", "OperationPlan[Any]"))
    ]
    bases = ", ".join(kind.__name__ for kind in methods)
    head = [_HEAD + "\n".join(imports), "", "OPERATIONS: tuple[str, ...]", "", f"class OperationMethods({bases}):"]
    return "\n".join([*head, *overloads, ""])


def test_the_stub_is_what_the_operations_say() -> None:
    assert STUB.read_text() == stub()


def test_a_dispatcher_has_the_calls_of_every_operation() -> None:
    for name in OPERATIONS:
        own = vars(importlib.import_module(f"{_PACKAGE}.{name}").Methods)
        calls = [call for call in own if not call.startswith("_")]
        assert calls and all(vars(Dispatcher).get(call, own[call]) is getattr(Dispatcher, call) for call in calls)


if __name__ == "__main__":
    STUB.write_text(stub())
