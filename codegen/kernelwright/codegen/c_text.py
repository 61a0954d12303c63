"""What templates may print into C and C++: words, numbers, and texts of a closed grammar; nothing else.

A value of a file (a model, a spec, a request, an architecture) reaches a source through :func:`printed` alone. It lets
words and bounded numbers pass; for anything longer a template names a filter of :data:`FILTERS`, which checks it
against a grammar. None of the grammars has quotes, braces, semicolons, backslashes, line ends or the beginning of a
line comment, and a parenthesis follows only names that the project itself defines: no value ends the comment, string
or expression that it is printed into, and none calls a function of the C library.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from enum import Enum

from kernelwright.codegen.violations import SpecError

MAX_WORD = 255
"""The most characters of a name: the limit of file systems."""
MAX_TEXT = 65_536
"""The most characters of a string literal."""
_MAX_NUMBER = 2**64

_WORD = re.compile(rf"\w{{0,{MAX_WORD}}}", re.ASCII)
_PATH = re.compile(r"(?!.*\.\.)\w[\w.-]*(?:/\w[\w.-]*)*", re.ASCII)
_TYPE = re.compile(r"[A-Za-z_](?:\w|::|[<>, ]|/\*[a-z ]+\*/)*", re.ASCII)
_CONSTANT = re.compile(r"(?:\w|::|[|() ])+", re.ASCII)
_EXPRESSION = re.compile(r"(?=[\w(!-])(?:\w|->|[-+*/<>!=&|]=?|&&|\|\||[.?:()\[\], ])+", re.ASCII)
_UNSAFE = re.compile(r"\?\?|//|/\*|\*/|\+\+|--|(?<![=!<>])=(?!=)|[-+*/&|]=")
_CALLED = re.compile(r"(\w+)\s*\(", re.ASCII)
_MATH = frozenset({"ceil", "floor", "fmax", "fmin", "log", "log2"})


class UnprintableError(SpecError):
    """A value that must not reach generated source; nothing was written."""


class CText(str):
    """Text that matches a grammar of this module. Only this module and the rendering of templates make it."""

    __slots__ = ()


def printed(value: object) -> object:
    """``value`` if it may be printed: text of a filter, a word or a bounded number; UnprintableError otherwise."""
    if isinstance(value, CText):
        return value
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, str):
        return _matching(_WORD, value, f"a word of at most {MAX_WORD} letters, digits and underscores")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refused(value, "a word or a number")
    if not (abs(value) < _MAX_NUMBER if isinstance(value, int) else math.isfinite(value)):
        raise _refused(value, "a finite number below 2^64")
    return value


def upper(value: object) -> CText:
    """A word in capitals."""
    return CText(str(printed(_text(value))).upper())


def flag(value: object) -> CText:
    """``true`` or ``false`` for a bool."""
    if not isinstance(value, bool):
        raise _refused(value, "true or false")
    return CText("true" if value else "false")


def digit(value: object) -> int:
    """0 or 1 for a bool, or a whole number unchanged."""
    if not isinstance(value, int) or abs(value) >= _MAX_NUMBER:
        raise _refused(value, "true, false or a whole number below 2^64")
    return int(value)


def string(value: object) -> CText:
    """A string literal of printable ASCII."""
    text = _text(value)
    if len(text) > MAX_TEXT or not text.isascii() or not text.isprintable() or "??" in text:
        raise _refused(value, f"printable ASCII of at most {MAX_TEXT} characters, without trigraphs")
    return CText('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"')


def path(value: object) -> CText:
    """A relative path of plain names."""
    return _matching(_PATH, _text(value), "a relative path of letters, digits, '_', '.' and '-', without '..'")


def type_name(value: object) -> CText:
    """A C++ type, or a constant by its qualified name: names, numbers, ``::`` and template arguments."""
    text = _matching(_TYPE, _text(value), "a name, with '::' and template arguments")
    if text.count("<") != text.count(">"):
        raise _refused(value, "as many '<' as '>'")
    return text


def constant(value: object) -> object:
    """A flag, a number, or named constants and sets of them: ``KW_SERVES(KW_A) | KW_SERVES(KW_B)``."""
    if isinstance(value, bool):
        return flag(value)
    if isinstance(value, int | float):
        return printed(value)
    return _calls_of(_matching(_CONSTANT, _text(value), "names, numbers, '|' and macros KW_…(…)"), frozenset())


def expression(value: object) -> CText:
    """C arithmetic over members, numbers, and functions of this project or of _MATH."""
    text = _matching(_EXPRESSION, _text(value), "arithmetic over names and numbers")
    if _UNSAFE.search(text):
        raise _refused(value, "arithmetic without assignments and comments")
    return _calls_of(text, _MATH)


def exact(value: object) -> CText:
    """A finite number in hexadecimal: the same bits in C."""
    if isinstance(value, str | Enum):
        raise _refused(value, "a number")
    return CText(float(printed(value)).hex())  # type: ignore[arg-type]


def join(values: Iterable[object], separator: str = ", ") -> CText:
    """Words and numbers joined by ``separator``."""
    if separator != ", ":
        raise _refused(separator, "', '")
    return CText(separator.join(str(printed(value)) for value in values))


FILTERS: Mapping[str, Callable[..., object]] = {
    **{"upper": upper, "lower": flag, "int": digit, "string": string, "path": path, "type": type_name},
    **{"constant": constant, "expression": expression, "exact": exact, "join": join, "length": len},
}
"""Filters that templates may name after ``|``; all that Jinja2 brings is left out."""


def _text(value: object) -> str:
    if isinstance(value, Enum):
        value = value.value
    if not isinstance(value, str):
        raise _refused(value, "a text")
    return value


def _matching(pattern: re.Pattern[str], text: str, allowed: str) -> CText:
    if len(text) > MAX_TEXT or not pattern.fullmatch(text):
        raise _refused(text, allowed)
    return CText(text)


def _calls_of(text: CText, known: frozenset[str]) -> CText:
    """Return ``text`` if every function that it calls is ours (``kw_…``, ``KW_…``) or known."""
    for name in _CALLED.findall(text):
        if not name.lower().startswith("kw_") and name not in known:
            raise _refused(text, f"calls of kw_… and KW_… alone, not of {name}")
    return text


def _refused(value: object, allowed: str) -> UnprintableError:
    return UnprintableError(f"{value!r:.200} cannot stand in generated source; allowed: {allowed}")
