"""Translates the Python module of a formula, or of rules, into a C header.

The module is ordinary Python, which the generator imports and calls. :func:`translate` accepts this subset of the
language:

* imports of constants, records and functions of other formulas, and of enumerations and structs of the C ABI
  (:mod:`kernelwright.problems`);
* constants: ``NAME = expression`` of numbers and earlier constants;
* records: ``class Name(NamedTuple)`` whose fields have types as below and may have defaults, or a frozen dataclass,
  which may add fields to those of another;
* functions with annotations, that assign local variables, return a value, and use ``if``, ``while``, ``for`` over a
  ``range``, conditional expressions, arithmetic, comparisons, ``in``, ``and``, ``or``, ``not``, ``min``, ``max``,
  ``abs``, the functions of :mod:`~kernelwright.codegen.formulas.numbers` and
  :mod:`~kernelwright.codegen.formulas.widths`, and functions and records above them.

A variable has one type: ``float`` (a double), ``bool``, ``int`` (of 64 bits, where sums and products saturate at what
:mod:`~kernelwright.codegen.formulas.widths` calls too large), ``str``, ``tuple[int, ...]``, an enumeration, a set of
one, a record or a struct. Numbers without a point are doubles in formulas, and whole in rules.

Rules are modules that state the path of their header (``HEADER``) and the prefix of their names in C (``PREFIX``).
Their functions may return a :data:`~kernelwright.codegen.formulas.refusals.Refusal`: None, or a sentence. In C they
return a ``kw_status`` and print the sentence into ``reason``, which has ``bytes``. Everything else is refused with its
line.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kernelwright.codegen.formulas.expressions import Translator
from kernelwright.codegen.formulas.statements import Body
from kernelwright.codegen.formulas.types import REFUSAL, WHOLE, Field, Function, Module, Record, check

_NUMBERS = ("kernelwright/dispatcher/support/numbers.h",)
_RULES = ("kernelwright/abi.h", "kernelwright/rules.h")
_PLACES = ("HEADER", "PREFIX")
_KNOWN = {
    "__future__",
    "dataclasses",
    "typing",
    "kernelwright.codegen.formulas.numbers",
    "kernelwright.codegen.formulas.refusals",
    "kernelwright.codegen.formulas.widths",
}
_OTHERS = "kernelwright."


@dataclass(frozen=True)
class Source:
    """The module of a formula or of rules.

    :ivar prefix: the prefix of its names in C, such as ``kw_gemm_hopper``.
    :ivar header: the header's path in ``#include``.
    :ivar path: the path of the Python file, for the header's first comment.
    :ivar rules: whether it is a module of rules.
    """

    text: str
    prefix: str
    header: str
    path: str
    rules: bool = False


Find = Callable[[str], Source]
"""Returns a formula that another one imports, by its module below ``kernelwright.codegen``; FormulaError for none."""


def translate(source: Source, find: Find, variable: bool = False) -> str:
    """Return the C99 header of a formula. FormulaError for anything outside the language.

    :param variable: whether constants can be changed through ``<prefix>_number``, as fits do.
    """
    guard = _guard(source)
    module, written, included = _read(source, find, variable)
    first = (
        "/* clang-format off */\n"
        f"/* Made of {source.path} by `kernelwright formulas`, and explained there. */\n"
        f"#ifndef {guard}\n#define {guard}\n"
    )
    if not module.functions and not module.records:
        return "\n".join((first, *written, f"\n#endif /* {guard} */\n"))
    first += "\n#include <stdbool.h>\n"
    if source.rules:
        first += "#include <stdint.h>\n#include <stdio.h>\n"
    if variable:
        first += "#include <string.h>\n"
        written.append(_lookup(module))
    includes = "".join(
        f'#include "{header}"\n'
        for header in sorted({*(_RULES if source.rules else _NUMBERS), *included, *module.headers})
    )
    return "\n".join((first, includes, *written, f"\n#endif /* {guard} */\n"))


def _guard(source: Source) -> str:
    """The include guard: the header's name for rules, since several headers may share a prefix."""
    name = source.header.removesuffix(".h").replace("/", "_") if source.rules else source.prefix
    return f"{name.upper()}_H"


def constants(source: str) -> dict[str, float]:
    """Return the constants of a formula that are numbers rather than expressions, in order."""
    nodes = [node for node in ast.parse(source).body if isinstance(node, ast.Assign)]
    return {
        ast.unparse(node.targets[0]): float(node.value.value)  # type: ignore[arg-type]
        for node in nodes
        if isinstance(node.value, ast.Constant) and not isinstance(node.value.value, str)
    }


def _read(source: Source, find: Find, variable: bool) -> tuple[Module, list[str], set[str]]:
    """Return the module, its definitions in C, and the headers of what it imports."""
    tree, module = ast.parse(source.text), Module(source.prefix)
    module.literals = WHOLE if source.rules else module.literals
    written: list[str] = []
    included: set[str] = set()
    for node in tree.body[1:] if ast.get_docstring(tree) else tree.body:
        if isinstance(node, ast.ImportFrom):
            included |= _import(node, module, find)
            continue
        if source.rules and isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in _PLACES:
            continue
        made = _MADE.get(type(node))
        check(made is not None, node, "is no constant, record or function")
        written.append(made(node, module, variable))  # type: ignore[misc]
    return module, written, included


def _import(node: ast.ImportFrom, module: Module, find: Find) -> set[str]:
    name = str(node.module)
    if name in _KNOWN:
        return set()
    check(name.startswith(_OTHERS), node, "imports what is no formula")
    if _import_classes(node, name, module):
        return set()
    other = find(name.removeprefix("kernelwright.codegen."))
    held, _, _ = _read(other, find, False)
    for one in node.names:
        known = one.asname is None and module.take(one.name, held)
        check(known, node, f"imports {one.name}, which is no record or function")
    return {other.header}


def _import_classes(node: ast.ImportFrom, name: str, module: Module) -> bool:
    """Import enumerations and structs of the C ABI; False if the module is another formula."""
    try:
        loaded = importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    taken = [module.take_class(one.name, getattr(loaded, one.name, None)) for one in node.names]
    check(all(taken) or not any(taken), node, "imports what has no name in C")
    return any(taken)


def _constant(node: ast.Assign, module: Module, variable: bool) -> str:
    target = node.targets[0]
    plain = len(node.targets) == 1 and isinstance(target, ast.Name) and target.id.isupper()
    check(plain, node, "is no constant, whose name is in capitals")
    name = ast.unparse(target)
    text, kind = Translator(module, {}).expression(node.value)
    # Its nodes are numbers and constants: the translator has refused everything else.
    value = eval(ast.unparse(node.value), {"__builtins__": {}}, dict(module.constants))
    module.constants[name] = value = value if kind == WHOLE else float(value)
    module.whole |= {name} if kind == WHOLE else set()
    if not isinstance(node.value, ast.Constant):
        module.derived.add(name)
    if variable:
        # A derived constant follows the constants that it is computed from.
        derived = name in module.derived
        return (
            f"#define {module.c_name(name)} ({text})" if derived else f"static double {module.c_name(name)} = {text};"
        )
    return f"#define {module.c_name(name)} {value!r}"


def _inherited(node: ast.ClassDef, module: Module) -> list[Field]:
    """Return the fields of the record that a record extends."""
    bases = [ast.unparse(base) for base in node.bases]
    if [ast.unparse(one) for one in node.decorator_list] != ["dataclass(frozen=True)"]:
        check(bases == ["NamedTuple"] and not node.decorator_list, node, "is no NamedTuple and no frozen dataclass")
        return []
    known = len(bases) < 2 and all(base in module.records for base in bases)
    check(known, node, f"extends what is not one record; known: {', '.join(module.records)}")
    return [one for base in bases for one in module.records[base].fields]


def _record(node: ast.ClassDef, module: Module, variable: bool) -> str:
    fields = _inherited(node, module)
    for part in node.body:
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            continue
        check(isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name), part, "is no annotated field")
        assert isinstance(part, ast.AnnAssign)
        kind = module.type_of(part.annotation)
        default = None if part.value is None else Translator(module, {}).typed(part.value, kind)
        fields.append(Field(ast.unparse(part.target), kind, default))
    module.records[node.name] = Record(node.name, tuple(fields))
    name = module.c_name(node.name)
    members = "".join(f"  {module.c_type(one.type)} {one.name};\n" for one in fields)
    return f"\ntypedef struct {name} {{\n{members}}} {name};"


def _function(node: ast.FunctionDef, module: Module, variable: bool) -> str:
    arguments = node.args
    plain = not (
        arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg or arguments.kwarg or arguments.defaults
    )
    check(plain and not node.decorator_list, node, "has other than plain arguments, or decorators")
    given = {one.arg: module.type_of(one.annotation) for one in arguments.args}
    result = module.type_of(node.returns)
    body = Body(module, given, result)
    written = body.write(node.body[1:] if ast.get_docstring(node) else node.body)
    module.functions[node.name] = Function(node.name, tuple(given.values()), result)
    listed = [f"{module.given_type(kind)} {name}" for name, kind in given.items()]
    listed += ["char* reason", "size_t bytes"] if result == REFUSAL else []
    head = f"static inline {module.c_type(result)} {module.c_name(node.name)}({', '.join(listed) or 'void'}) {{"
    lines = (ast.get_docstring(node) or "").splitlines()
    about = f"/* {lines[0]} */\n" if lines and module.literals == WHOLE else ""
    return f"\n{about}{head}\n{written}}}"


def _lookup(module: Module) -> str:
    lines = "".join(
        f'  if (strcmp(name, "{name}") == 0) return &{module.c_name(name)};\n'
        for name in module.constants
        if name not in module.derived and name not in module.imported
    )
    return f"\nstatic inline double* {module.prefix}_number(const char* name) {{\n{lines}  return NULL;\n}}"


_MADE: Mapping[type[ast.stmt], Callable[..., str]] = {
    ast.Assign: _constant,
    ast.ClassDef: _record,
    ast.FunctionDef: _function,
}
