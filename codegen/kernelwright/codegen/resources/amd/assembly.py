"""The functions of an AMD assembly as LLVM prints it, instruction by instruction."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kernelwright.files.counts.line import Line

_ENCODING = re.compile(r"_(e32|e64|dpp|dpp8|sdwa|e64_dpp|e64_dpp8|vop3)$")
_OPAQUE = ("dpp", "sdwa")
_OLD_MATRIX = re.compile(r"(_\d+x\d+x\d+)([a-z])")  # e.g. v_mfma_f32_32x32x8bf16_1k of gfx90a
_NARROW = ("2", "3", "4")  # cbsz and blgp: fp6, bf6 and fp4
_LABEL = re.compile(r"^(\S+):(?=\s|$)")
_REGISTER = re.compile(r"[vas](\d+|\[\d+:\d+\])$")


class AssemblyError(ValueError):
    """A function that is not in the assembly."""


@dataclass(frozen=True)
class Statement:
    """One instruction: ``operands`` as written (``v[20:23]``, ``0x80``), ``modifiers`` by name (``offset`` → ``8192``).

    ``opaque``: lanes or parts of registers are exchanged, so that the name does not determine the result. ``parts`` are
    the two halves of a dual-issue instruction.
    """

    line: Line
    operands: tuple[str, ...] = ()
    modifiers: Mapping[str, str] = field(default_factory=dict)
    opaque: bool = False
    parts: tuple[Statement, ...] = ()


def function(text: str, symbol: str) -> list[Statement]:
    """Return the instructions of ``symbol``, in order; AssemblyError if it is not there."""
    match = re.search(rf"^{re.escape(symbol)}:.*?^\.Lfunc_end\d+:", text, re.MULTILINE | re.DOTALL)
    if match is None:
        raise AssemblyError(f"the assembly has no function {symbol}")
    labels: dict[str, int] = {}
    statements: list[Statement] = []
    for row in match.group(0).splitlines()[1:]:
        code = row.partition(";")[0].rstrip()
        label, code = _LABEL.match(code), code.strip()
        if label:
            labels[label[1]] = len(statements)
        elif code and not code.startswith("."):  # neither a lone comment nor a directive
            statements.append(statement(code))
    return [_aimed(one, labels) for one in statements]


def statement(text: str) -> Statement:
    """Parse one instruction, without its branch target."""
    if " :: " in text:
        parts = tuple(statement(part.strip()) for part in text.split(" :: "))
        return Statement(parts[0].line, parts=tuple(_single(part) for part in parts))
    name, _, rest = text.partition(" ")
    encoding = _ENCODING.search(name)
    base = _OLD_MATRIX.sub(r"\1_\2", _ENCODING.sub("", name)).removesuffix("_1k")
    operands = [part.strip() for part in rest.split(",")] if rest else []
    modifiers: dict[str, str] = {}
    if operands:
        operands[-1], *words = operands[-1].split() or [""]
        operands += [word for word in words if _REGISTER.match(word)]  # inline assembly may lack the comma
        named = (word.partition(":") for word in words if not _REGISTER.match(word))
        modifiers = {key: value for key, _, value in named}
    narrow = all(modifiers.get(key) in _NARROW for key in ("cbsz", "blgp"))
    opaque = encoding is not None and any(word in encoding.group(1) for word in _OPAQUE)
    return Statement(Line(base, narrow=narrow, to_lds="lds" in modifiers), tuple(operands), modifiers, opaque)


def _single(part: Statement) -> Statement:
    """Return the instruction that a half of a dual-issue instruction stands for."""
    return replace(part, line=replace(part.line, name=part.line.name.replace("v_dual_", "v_", 1)))


def _aimed(one: Statement, labels: Mapping[str, int]) -> Statement:
    if not one.line.branches or not one.operands:
        return one
    return replace(one, line=replace(one.line, goal=labels.get(one.operands[0])))


def lines(statements: Sequence[Statement]) -> list[Line]:
    """Return the lines that counting reads."""
    return [one.line for one in statements]
