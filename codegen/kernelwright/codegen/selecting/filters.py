"""Filters: expressions over kernels such as ``c.tile_n >= 128 and c.pipeline == 'compv4'``."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import simpleeval  # type: ignore[import-untyped]

from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation, operation_names
from kernelwright.codegen.violations import SpecError

MAX_LENGTH = 1000
_NODES = (
    *(ast.Expression, ast.BoolOp, ast.And, ast.Or, ast.UnaryOp, ast.Not, ast.USub, ast.Compare, ast.BinOp, ast.IfExp),
    *(ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.In, ast.NotIn, ast.Is, ast.IsNot),
    *(ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod),
    *(ast.Name, ast.Attribute, ast.Constant, ast.Tuple, ast.List, ast.Load),
)


class FilterError(SpecError):
    """A filter that is no expression over kernels, or that matches none of them."""


def apply_filter(expression: str, kernels: Iterable[Kernel]) -> list[Kernel]:
    """The kernels for which ``expression`` is true, in their order.

    Kernels are called ``c`` and have the attributes of :func:`view`. Comparisons, arithmetic, ``and``, ``or``, ``not``,
    ``in`` and conditional expressions are allowed; calls, indexing, powers and everything else are not.
    Raises FilterError for any other expression, and if nothing matches.
    """
    listed = list(kernels)
    matches = compile_filter(expression, dict.fromkeys(kernel.spec.op for kernel in listed))
    kept = [kernel for kernel in listed if matches(kernel)]
    if not kept:
        raise FilterError(f"filter {expression!r} matches none of {len(listed)} kernels")
    return kept


def compile_filter(expression: str, operations: Iterable[str] | None = None) -> Callable[[Kernel], bool]:
    """``expression`` as a function of a kernel; FilterError, also from the function, if it is not acceptable.

    Attributes may be those of kernels of any of ``operations`` (default: all). An expression over several operations
    tests ``c.op`` before it uses an attribute that only some of them have.
    """
    tree = _checked(expression, attributes(operation_names() if operations is None else operations))
    evaluator = simpleeval.EvalWithCompoundTypes(functions={})

    def matches(kernel: Kernel) -> bool:
        evaluator.names = {"c": SimpleNamespace(**view(kernel))}
        try:
            return bool(evaluator.eval(expression, previously_parsed=tree))
        except (simpleeval.InvalidExpression, ArithmeticError, TypeError, ValueError, MemoryError) as error:
            raise FilterError(f"filter {expression!r} on a kernel of {kernel.spec.op}: {error}") from None

    return matches


def view(kernel: Kernel) -> dict[str, Any]:
    """The attributes that a filter sees: plain numbers, booleans and text."""
    own = operation(kernel.spec.op).view(kernel.spec)
    return {"arch": kernel.arch, "name": kernel.name, "identity": kernel.identity, **own}


def attributes(operations: Iterable[str]) -> tuple[str, ...]:
    """The attributes of kernels of some operations."""
    own = (name for one in operations for name in operation(one).attributes)
    return tuple(dict.fromkeys((*_COMMON, *own)))


_COMMON = ("arch", "name", "identity")


def _checked(expression: str, allowed: Sequence[str]) -> ast.expr:
    if len(expression) > MAX_LENGTH:
        raise FilterError(f"filter is {len(expression)} characters long; at most {MAX_LENGTH}")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise FilterError(f"filter {expression!r} is no expression: {error}") from None
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            raise FilterError(
                f"filter {expression!r}: {type(node).__name__} is not allowed, only comparisons, "
                "arithmetic, and, or, not, in"
            )
        if isinstance(node, ast.Name) and node.id != "c":
            raise FilterError(f"filter {expression!r}: unknown name {node.id!r}; a kernel is called c, as in c.tile_m")
        if isinstance(node, ast.Attribute) and not (isinstance(node.value, ast.Name) and node.attr in allowed):
            close = difflib.get_close_matches(node.attr, allowed, n=1)
            hint = f" (did you mean c.{close[0]}?)" if close else ""
            raise FilterError(
                f"filter {expression!r}: unknown attribute {node.attr!r}{hint}; allowed: {', '.join(allowed)}"
            )
    return tree.body
