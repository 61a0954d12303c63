"""The features of an operation: one JSON file, which training reads as Python functions and models as C expressions."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.resources
import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

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
    "log": ("log", math.log),
    "ceil": ("ceil", lambda value: float(math.ceil(value))),
    "floor": ("floor", lambda value: float(math.floor(value))),
    "min": ("fmin", min),
    "max": ("fmax", max),
}


@dataclass(frozen=True)
class Abi:
    """What a compiled model reads, in C.

    :ivar headers: of the operation, beside those of selection.
    :ivar problem: the struct that ``p`` points to; ``traits`` the one of ``t``.
    :ivar dtype: the element type that a model is for, of ``p``.
    :ivar applies: whether features can be computed of a problem, over ``p``.
    """

    headers: tuple[str, ...]
    problem: str
    traits: str
    dtype: str
    applies: str


@dataclass(frozen=True)
class Schema:
    """The features of an operation.

    :ivar inputs: numbers of the C ABI: C expressions over ``p``, ``t``, ``compute_units`` and ``value``, by name.
        ``value`` is what is chosen where the problem leaves something open (slices, splits), else 0.
    :ivar features: expressions over inputs and terms by name, in the order of a model's columns.
    :ivar problem_features: those of the problem alone; a model covers a problem within the range of its training data.
    :ivar kernel_features: further expressions, which tell kinds of kernels apart and no tree reads: kernels beyond the
        range of a model's training data come behind those within it.
    :ivar digest: sha256 of the file's content as canonical JSON; models of another digest are refused.
    :ivar terms: expressions over inputs and earlier terms, which features share.
    :ivar prior: the feature that a model's trees correct: the logarithm of a predicted rate. Empty: trees predict all.
    :ivar abi: None for features that are not compiled.
    """

    op: str
    inputs: Mapping[str, str]
    features: Mapping[str, str]
    problem_features: tuple[str, ...]
    digest: str
    terms: Mapping[str, str] = field(default_factory=dict)
    kernel_features: Mapping[str, str] = field(default_factory=dict)
    prior: str = ""
    abi: Abi | None = None

    @functools.cached_property
    def _parsed(self) -> Mapping[str, tuple[str, Evaluate]]:
        """Terms, each over those before it, and features of both kinds: in C and as functions."""
        known, terms = dict(self.inputs), {}
        for name, text in self.terms.items():
            terms[name] = _read(text, known)
            known[name] = text
        features = {f"feature {name}": _read(text, known) for name, text in self.features.items()}
        return terms | features | {f"kernel {name}": _read(text, known) for name, text in self.kernel_features.items()}

    @functools.cached_property
    def functions(self) -> Mapping[str, Evaluate]:
        """Each feature as a function of inputs and terms."""
        return {name: self._parsed[f"feature {name}"][1] for name in self.features}

    @functools.cached_property
    def c_expressions(self) -> Mapping[str, str]:
        """Each feature as a C expression over variables with the names of inputs and terms."""
        return {name: self._parsed[f"feature {name}"][0] for name in self.features}

    @functools.cached_property
    def c_kernel_expressions(self) -> Mapping[str, str]:
        """The same of each kernel feature."""
        return {name: self._parsed[f"kernel {name}"][0] for name in self.kernel_features}

    @functools.cached_property
    def c_terms(self) -> Mapping[str, str]:
        """Each term as a C expression, in an order in which they can be computed."""
        return {name: self._parsed[name][0] for name in self.terms}

    @functools.cached_property
    def used_inputs(self) -> Mapping[str, str]:
        """The inputs that terms or features read."""
        read = " ".join((*self.terms.values(), *self.features.values(), *self.kernel_features.values()))
        return {name: text for name, text in self.inputs.items() if re.search(rf"\b{name}\b", read)}

    @functools.cached_property
    def reads_value(self) -> bool:
        """Whether features depend on what is chosen where a problem leaves something open."""
        return any(re.search(r"\bvalue\b", text) for text in self.used_inputs.values())

    def values(self, inputs: Values) -> list[float]:
        """The features in their order."""
        known = self._known(inputs)
        return [evaluate(known) for evaluate in self.functions.values()]

    def kernel_values(self, inputs: Values) -> list[float]:
        """The kernel features in their order."""
        known = self._known(inputs)
        return [self._parsed[f"kernel {name}"][1](known) for name in self.kernel_features]

    def _known(self, inputs: Values) -> Values:
        known = dict(inputs)
        for name in self.terms:
            known[name] = self._parsed[name][1](known)
        return known


@functools.cache
def schema_of(op: str) -> Schema:
    """The schema of an operation; SpecError if it has none."""
    folder = importlib.resources.files("kernelwright.codegen.heuristics").joinpath("data")
    known = sorted(item.name.removesuffix(".json") for item in folder.iterdir() if item.name.endswith(".json"))
    if op not in known:
        raise SpecError(f"no features are known of {op!r}; allowed: {', '.join(known)}")
    raw = json.loads(folder.joinpath(f"{op}.json").read_text("utf-8"))
    content = {key: value for key, value in raw.items() if key not in ("about", "abi", "kernel_features")}
    # The order of features is that of a model's columns, so keys are not sorted.
    digest = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
    abi = Abi(**{**raw["abi"], "headers": tuple(raw["abi"]["headers"])})
    return Schema(
        raw["op"], raw["inputs"], raw["features"], tuple(raw["problem_features"]), digest, raw.get("terms", {}),
        raw.get("kernel_features", {}), raw.get("prior", ""), abi,
    )  # fmt: skip


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
