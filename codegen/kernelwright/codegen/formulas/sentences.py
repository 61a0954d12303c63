"""Results of rules in C: a status, and the sentence of a refusal."""

from __future__ import annotations

import ast
import json

from kernelwright.codegen.formulas.expressions import COMPARISON, Translator
from kernelwright.codegen.formulas.types import REAL, REFUSAL, TEXT, TRUTH, WHOLE, Module, check

STATUS = "status"
"""The C variable that holds the status of rules called in turn."""


class Sentences:
    """Translates statements that end a rule."""

    def __init__(self, module: Module, translator: Translator) -> None:
        self._module = module
        self._translator = translator
        self.asks = False
        """Whether a statement needs the variable STATUS."""

    def returned(self, node: ast.expr, indent: str, status: str = "KW_UNSUPPORTED") -> str:
        """Translate ``return`` of a sentence, None, another rule, rules in turn (``or``), or one of two."""
        match node:
            case ast.Constant(value=None):
                return f"{indent}return KW_OK;\n"
            case ast.JoinedStr() | ast.Constant(value=str()):
                return f"{indent}{self._printed(node)}\n{indent}return {status};\n"
            case ast.Call(func=ast.Name(id="Invalid"), args=[sentence]):
                return self.returned(sentence, indent, "KW_INVALID_ARGUMENT")
            case ast.BoolOp(op=ast.Or(), values=[*first, last]):
                return "".join(self._asked(one, indent) for one in first) + self.returned(last, indent)
            case ast.IfExp(test=test, body=ast.Constant(value=None), orelse=orelse):
                return f"{indent}if ({self._translator.typed(test, TRUTH)}) return KW_OK;\n" + self.returned(
                    orelse, indent
                )
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._refused(test, body, indent) + self.returned(orelse, indent)
        return f"{indent}return {self._translator.typed(node, REFUSAL)};\n"

    def _asked(self, node: ast.expr, indent: str) -> str:
        """Return if a rule refuses; a rule that applies on a condition only is ``… if condition else None``."""
        match node:
            case ast.IfExp(test=test, body=body, orelse=ast.Constant(value=None)):
                return self._refused(test, body, indent)
            case ast.IfExp(test=test, body=ast.Constant(value=None), orelse=orelse):
                return self._refused(ast.UnaryOp(ast.Not(), test), orelse, indent)
            case ast.IfExp():
                check(False, node, "refuses in either case; allowed in front of others: … if condition else None")
        return self._refused(None, node, indent)

    def _refused(self, test: ast.expr | None, node: ast.expr, indent: str) -> str:
        match node:
            case ast.JoinedStr() | ast.Constant() | ast.Call(func=ast.Name(id="Invalid")):
                check(test is not None, node, "refuses on no condition")
                assert test is not None
                condition = self._translator.typed(test, TRUTH)
                return f"{indent}if ({condition}) {{\n{self.returned(node, indent + '  ')}{indent}}}\n"
        self.asks = True
        refuses = f"({STATUS} = {self._translator.typed(node, REFUSAL)}) != KW_OK"
        condition = f"{self._translator.typed(test, TRUTH, COMPARISON)} && " if test else ""
        return f"{indent}if ({condition}{refuses}) return {STATUS};\n"

    def _printed(self, node: ast.expr) -> str:
        """Return a call of snprintf with the sentence."""
        text, given = "", []
        for part in node.values if isinstance(node, ast.JoinedStr) else [node]:
            if isinstance(part, ast.Constant):
                text += str(part.value).replace("%", "%%")
                continue
            assert isinstance(part, ast.FormattedValue)
            form, value = self._value(part)
            text += form
            given.append(f", {value}")
        form = f'"%s", {json.dumps(text.replace("%%", "%"))}' if not given else json.dumps(text)
        return f"snprintf(reason, bytes, {form}{''.join(given)});"

    def _value(self, part: ast.FormattedValue) -> tuple[str, str]:
        text, kind = self._translator.expression(part.value)
        form = ast.unparse(part.format_spec)[2:-1] if part.format_spec else ""
        if kind == REAL and form == "g":
            return "%g", text
        check(not form and part.conversion < 0, part.value, "is printed in a form that rules lack")
        if kind == WHOLE:
            return "%lld", f"(long long)({text})"
        if kind in self._module.enums:
            return "%s", f"{self._module.enums[kind].function}({text})"
        check(kind == TEXT, part.value, f"is {kind}, which no sentence prints")
        return "%s", text
