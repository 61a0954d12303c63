"""Statements of a formula or rule in C."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from kernelwright.codegen.formulas.expressions import ARITHMETIC, Translator
from kernelwright.codegen.formulas.sentences import STATUS, Sentences
from kernelwright.codegen.formulas.types import REAL, REFUSAL, TEXT, TRUTH, WHOLE, WHOLES, Module, check

_INDENT = "  "
_ZERO = {REAL: "0", TRUTH: "false", WHOLE: "0", TEXT: '""', REFUSAL: "KW_OK"}


class Body:
    """Translates the statements of a function."""

    def __init__(self, module: Module, arguments: Mapping[str, str], result: str) -> None:
        self._module = module
        self._variables = dict(arguments)
        self._result = result
        self._translator = Translator(module, self._variables)
        self._sentences = Sentences(module, self._translator)
        self._changed: set[str] = set(arguments)
        self._early: dict[str, str] = {}

    def write(self, statements: Sequence[ast.stmt]) -> str:
        """Return the text between the braces."""
        check(bool(statements), ast.Pass(), "is an empty function")
        check(_returns(statements), statements[-1], "can end without returning a value")
        self._changed |= _changed(statements)
        written = self._block(statements, _INDENT)
        if self._sentences.asks:
            self._early[STATUS] = REFUSAL
        declared = "".join(
            f"  {self._module.c_type(kind)} {name} = {_ZERO.get(kind, '0')};\n" for name, kind in self._early.items()
        )
        return declared + written

    def _block(self, statements: Sequence[ast.stmt], indent: str) -> str:
        return "".join(self._statement(one, indent) for one in statements)

    def _statement(self, node: ast.stmt, indent: str) -> str:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                return indent + self._assigned(node, name, value)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value) if type(op) in ARITHMETIC:
                check(self._variables.get(name) in (REAL, WHOLE), node, "changes what is no number here")
                if self._variables[name] == WHOLE:
                    return indent + self._assigned(node, name, ast.BinOp(target, op, value))
                return f"{indent}{name} {ARITHMETIC[type(op)][0]}= {self._translator.typed(value, REAL)};\n"
            case ast.Return(value=value) if value is not None:
                if self._result == REFUSAL:
                    return self._sentences.returned(value, indent)
                return f"{indent}return {self._translator.typed(value, self._result)};\n"
            case ast.While(test=test, body=body, orelse=[]):
                return self._branch("while", self._translator.typed(test, TRUTH), body, indent) + "\n"
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=bounds), orelse=[]):
                return self._loop(node, name, bounds, indent)
            case ast.If(test=test, body=body, orelse=orelse):
                otherwise = f" else {{\n{self._block(orelse, indent + _INDENT)}{indent}}}" if orelse else ""
                return self._branch("if", self._translator.typed(test, TRUTH), body, indent) + otherwise + "\n"
        check(False, node, "is no statement of a formula")
        raise AssertionError

    def _branch(self, word: str, condition: str, body: Sequence[ast.stmt], indent: str) -> str:
        return f"{indent}{word} ({condition}) {{\n{self._block(body, indent + _INDENT)}{indent}}}"

    def _loop(self, node: ast.For, name: str, bounds: Sequence[ast.expr], indent: str) -> str:
        check(1 <= len(bounds) <= 2 and self._variables.get(name, WHOLE) == WHOLE, node, "is no loop of a formula")
        first, end = (self._translator.typed(one, WHOLE) for one in (ast.Constant(0), *bounds)[-2:])
        self._variables[name] = WHOLE
        head = f"int64_t {name} = {first}; {name} < {end}; ++{name}"
        return self._branch("for", head, node.body, indent) + "\n"

    def _assigned(self, node: ast.stmt, name: str, value: ast.expr) -> str:
        check(name not in self._module.constants, node, "changes a constant")
        known = self._variables.get(name)
        if isinstance(value, ast.Tuple):
            check(known is None and name not in self._changed, node, "assigns whole numbers twice or in a branch")
            self._variables[name] = WHOLES
            listed = ", ".join(self._translator.typed(one, WHOLE) for one in value.elts)
            return f"const int64_t {name}[] = {{{listed}}};\n"
        text, kind = self._translator.expression(value, known)
        check(known in (None, kind), node, f"makes {name} {kind}, which was {known}")
        self._variables[name] = kind
        if name not in self._changed:
            declared = self._module.given_type(kind) if kind in self._module.structs else self._module.c_type(kind)
            return f"{'' if declared.startswith('const ') else 'const '}{declared} {name} = {text};\n"
        if known is None:
            simple = kind in (*_ZERO, *self._module.enums)
            check(simple, node, "assigns a record twice or in a branch")
            self._early[name] = kind
        return f"{name} = {text};\n"


def _changed(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the variables assigned more than once, or other than by the function's outermost statements."""
    changed, seen = set(), set()
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign | ast.AugAssign):
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                name = ast.unparse(target)
                if node is not statement or name in seen:
                    changed.add(name)
                seen.add(name)
    return changed


def _returns(statements: Sequence[ast.stmt]) -> bool:
    last = statements[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and _returns(last.body) and _returns(last.orelse)
    endless = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value is True
    return isinstance(last, ast.Return) or endless
