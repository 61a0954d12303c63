"""The features of an operation: one JSON file, which training reads as Python functions and models as C expressions."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.resources
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelwright.codegen.violations import SpecError

Values = Mapping[str, float]
Evaluate = Callable[[Values], float]

_BINARY: Mapping[type[ast.operator], tuple[str, Callable[[float, float], float]]] = {
    ast.Add: ("+", lambda left, right: left + right),
    ast.Sub: ("-", lambda left, right: left - right),
    ast.Mult: ("*", lambda left, right: left * right),
    ast.Div: ("/", lambda left, right: left / right),
}
_COMPARED: Mapping[type[ast.cmpop], tuple[str, Callable[[float, float], bool]]] = {
    ast.Lt: ("<", lambda left, right: left < right),
    ast.LtE: ("<=", lambda left, right: left <= right),
    ast.Gt: (">", lambda left, right: left > right),
    ast.GtE: (">=", lambda left, right: left >= right),
}
# C's name, and the function in Python.
_FUNCTIONS: Mapping[str, tuple[str, Callable[..., float]]] = {
    "log2": ("log2", math.log2),
    "ceil": ("ceil", lambda value: float(math.ceil(value))),
    "min": ("fmin", min),
    "max": ("fmax", max),
}


@dataclass(frozen=True)
class Schema:
    """The features of an operation.

    :ivar inputs: numbers of the C ABI: C expressions over ``p``, ``t`` and ``compute_units`` by name.
    :ivar features: expressions over inputs by name, in the order of a model's columns.
    :ivar problem_features: those of the problem alone; a model covers a problem within the range of its training data.
    :ivar digest: sha256 of the file's content as canonical JSON; models of another digest are refused.
    """

    op: str
    inputs: Mapping[str, str]
    features: Mapping[str, str]
    problem_features: tuple[str, ...]
    digest: str

    @functools.cached_property
    def functions(self) -> Mapping[str, Evaluate]:
        """Each feature as a function of inputs."""
        return {name: _read(text, self.inputs)[1] for name, text in self.features.items()}

    @functools.cached_property
    def c_expressions(self) -> Mapping[str, str]:
        """Each feature as a C expression over variables with the inputs' names."""
        return {name: _read(text, self.inputs)[0] for name, text in self.features.items()}

    def values(self, inputs: Values) -> list[float]:
        """The features in their order."""
        return [evaluate(inputs) for evaluate in self.functions.values()]


@functools.cache
def schema_of(op: str) -> Schema:
    """The schema of an operation; SpecError if it has none."""
    folder = importlib.resources.files("kernelwright.codegen.heuristics").joinpath("data")
    known = sorted(item.name.removesuffix(".json") for item in folder.iterdir() if item.name.endswith(".json"))
    if op not in known:
        raise SpecError(f"no features are known of {op!r}; allowed: {', '.join(known)}")
    raw = json.loads(folder.joinpath(f"{op}.json").read_text("utf-8"))
    content = {key: value for key, value in raw.items() if key != "about"}
    # The order of features is that of a model's columns, so keys are not sorted.
    digest = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
    return Schema(raw["op"], raw["inputs"], raw["features"], tuple(raw["problem_features"]), digest)


def _read(text: str, inputs: Mapping[str, str]) -> tuple[str, Evaluate]:
    """An expression in C and as a function. SpecError for anything but numbers, inputs, arithmetic and _FUNCTIONS."""
    return _node(ast.parse(text, mode="eval").body, text, inputs)


def _node(node: ast.expr, text: str, inputs: Mapping[str, str]) -> tuple[str, Evaluate]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        number = float(node.value)
        return repr(number), lambda values: number
    if isinstance(node, ast.Name) and node.id in inputs:
        name = node.id
        return name, lambda values: float(values[name])
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        symbol, combine = _BINARY[type(node.op)]
        return _pair(node.left, node.right, symbol, combine, text, inputs)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARED:
        symbol, compare = _COMPARED[type(node.ops[0])]
        written, evaluate = _pair(node.left, node.comparators[0], symbol, compare, text, inputs)
        return f"({written} ? 1.0 : 0.0)", lambda values: float(evaluate(values))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        called, function = _FUNCTIONS[node.func.id]
        parts = [_node(argument, text, inputs) for argument in node.args]
        return (
            f"{called}({', '.join(written for written, _ in parts)})",
            lambda values: float(function(*(evaluate(values) for _, evaluate in parts))),
        )
    raise SpecError(f"feature {text!r}: {ast.unparse(node)} is not allowed; inputs: {', '.join(inputs)}")


def _pair(
    left: ast.expr,
    right: ast.expr,
    symbol: str,
    combine: Callable[[float, float], float],
    text: str,
    inputs: Mapping[str, str],
) -> tuple[str, Evaluate]:
    first, evaluate_first = _node(left, text, inputs)
    second, evaluate_second = _node(right, text, inputs)
    return f"({first} {symbol} {second})", lambda values: combine(evaluate_first(values), evaluate_second(values))
