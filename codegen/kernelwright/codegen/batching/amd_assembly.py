"""Cuts the assembly of several AMD kernels into what a compile of each alone writes, byte for byte.

clang numbers functions, and labels with them, in the order of the translation unit; everything else of a kernel is the
same wherever it stands. Anything shared between kernels, or not understood, is not cut: UncuttableError.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernelwright.codegen.batching.batch import UncuttableError

_COMMENT_COLUMN = 40  # MCAsmInfo::CommentColumn of LLVM
_UNIT = "__hip_cuid_"  # a symbol of every translation unit
_FUNCTION = re.compile(r"^\t\.text\n(?=\t.*; -- Begin function (\S+)$)", re.M)
_BEGIN = "; -- Begin function "
_NUMBER = re.compile(r"^\.Lfunc_end(\d+):$", re.M)
# Register counts of functions that kernels call; there must be none.
_MAXIMA = re.compile(
    r"\t\.text\n\t\.p2alignl .*\n\t\.fill .*\n\t\.section\t\.AMDGPU\.gpr_maximums.*\n"
    r"(?:\t\.set amdgpu\.max_num_\w+, 0\n)+\t\.text\n"
)
_OBJECT = re.compile(r"^\t\.size\t(\S+), \d+$", re.M)
_SECTION = re.compile(r"^\t\.(?:section\t.*|text|data|bss)\n", re.M)
_TAIL = re.compile(
    r"(?P<before>\t\.ident\t.*\n\t\.section\t.*\n\t\.addrsig\n)(?P<addresses>(?:\t\.addrsig_sym \S+\n)*)"
    r"(?P<open>\t\.amdgpu_metadata\n---\namdhsa\.kernels:\n)(?P<kernels>(?:  .*\n)+)"
    r"(?P<after>amdhsa\.target: (?:.*\n)*?\t\.end_amdgpu_metadata\n)"
)
_ENTRY = re.compile(r"^(?=  - )", re.M)
_NAME = re.compile(r"^    \.name: +(\S+)$", re.M)
_LABEL = re.compile(r"\.L(?:BB\d+_\d+|[a-z_]+?\d+)\b")
_COMMENTED = re.compile(r"^(\.LBB\d+_\d+:) *(?=;)", re.M)
_COUNTED = re.compile(r"\.L(?!func_end)([a-z_]+?)(\d+)\b")


@dataclass(frozen=True)
class _Parts:
    """Assembly taken apart: functions, objects and metadata entries by name, in order."""

    head: str
    functions: Mapping[str, str]
    maxima: str
    objects: Mapping[str, tuple[str, str]]  # with the directive of the object's section
    before: str
    addresses: tuple[str, ...]
    open: str
    entries: Mapping[str, str]
    after: str


def cut(text: str, symbols: Sequence[str]) -> dict[str, str]:
    """Return the assembly of each kernel by its symbol; all names of a kernel start with its symbol and an underscore.

    UncuttableError if two kernels share something, or a part of the text is not understood.
    """
    parts = _take_apart(text)
    for name in (*parts.functions, *parts.objects, *parts.entries, *parts.addresses):
        owners = [symbol for symbol in symbols if name.startswith(f"{symbol}_")]
        if len(owners) != 1 and name != _UNIT:
            raise UncuttableError(f"{name} belongs to {len(owners)} kernels")
    return {symbol: _put_together(parts, f"{symbol}_") for symbol in symbols}


def _take_apart(text: str) -> _Parts:
    maxima = _found(_MAXIMA, text)
    starts = [*_FUNCTION.finditer(text, 0, maxima.start())]
    ends = [*(start.start() for start in starts[1:]), maxima.start()]
    functions = {start[1]: text[start.start() : end] for start, end in zip(starts, ends, strict=True)}
    if not starts or len(functions) != text.count(_BEGIN):
        raise UncuttableError("a function stands in a section of its own")
    tail = _found(_TAIL, text, maxima.end())
    if tail.end() != len(text):
        raise UncuttableError("something follows the metadata")
    entries = {_found(_NAME, entry)[1]: entry for entry in _ENTRY.split(tail["kernels"]) if entry}
    return _Parts(
        text[: starts[0].start()],
        functions,
        maxima[0],
        _objects(text[maxima.end() : tail.start()]),
        tail["before"],
        tuple(line.split()[1] for line in tail["addresses"].splitlines()),
        tail["open"],
        entries,
        tail["after"],
    )


def _objects(text: str) -> dict[str, tuple[str, str]]:
    """Return each object without the directive of its section, which is written only where the section changes."""
    by_name = {}
    section = "\t.text\n"
    for part in text.split("\n\n")[:-1]:
        names, sections = _OBJECT.findall(part), _SECTION.findall(part)
        if len(names) != 1 or len(sections) > 1:
            raise UncuttableError(f"an object is not understood: {part[:80]!r}")
        section = sections[0] if sections else section
        by_name[names[0]] = (section, f"{_SECTION.sub('', part)}\n\n")
    return by_name


def _put_together(parts: _Parts, prefix: str) -> str:
    functions = [part for name, part in parts.functions.items() if name.startswith(prefix)]
    entries = [part for name, part in parts.entries.items() if name.startswith(prefix)]
    if not functions or len(functions) != len(entries):
        raise UncuttableError(f"{prefix}: {len(functions)} functions, {len(entries)} entries of metadata")
    pieces = [parts.head, _counted_from_0("".join(map(_numbered, functions, range(len(functions))))), parts.maxima]
    section = "\t.text\n"
    for name, (own, part) in parts.objects.items():
        if name == _UNIT or name.startswith(prefix):
            pieces.append(part if own == section else _with_section(part, own))
            section = own
    addresses = [name for name in parts.addresses if name == _UNIT or name.startswith(prefix)]
    listed = "".join(f"\t.addrsig_sym {name}\n" for name in addresses)
    return "".join((*pieces, parts.before, listed, parts.open, *entries, parts.after))


def _with_section(part: str, section: str) -> str:
    """Insert the section directive after the object's type, where clang writes it."""
    head, marker, tail = part.partition(",@object")
    rest, newline, tail = tail.partition("\n")
    if not marker:
        raise UncuttableError(f"an object has no type: {part[:80]!r}")
    return f"{head}{marker}{rest}{newline}{section}{tail}"


def _numbered(function: str, number: int) -> str:
    """Renumber a function as the one with this number in its translation unit."""
    old = _found(_NUMBER, function)[1]
    for label in set(_LABEL.findall(function)):
        if label.startswith(".LBB") and not label.startswith(f".LBB{old}_"):
            raise UncuttableError(f"{label} is a label of another function")
    function = re.sub(rf"(?<!\w)(\.LBB|BB|\.Lfunc_end){old}(?=_|\b)", rf"\g<1>{number}", function)
    return function if len(old) == len(str(number)) else _COMMENTED.sub(lambda at: _padded(at[1]), function)


def _padded(label: str) -> str:
    return f"{label:<{_COMMENT_COLUMN}}" if len(label) < _COMMENT_COLUMN else f"{label} "


def _counted_from_0(functions: str) -> str:
    """Renumber other labels, such as those of long branches, which are counted by kind through the translation unit."""
    first: dict[str, int] = {}
    for kind, number in set(_COUNTED.findall(functions)):
        first[kind] = min(first.get(kind, int(number)), int(number))
    return _COUNTED.sub(lambda at: f".L{at[1]}{int(at[2]) - first[at[1]]}", functions) if first else functions


def _found(pattern: re.Pattern[str], text: str, start: int = 0) -> re.Match[str]:
    match = pattern.search(text, start)
    if match is None:
        raise UncuttableError(f"the text has nothing of the form {pattern.pattern[:60]!r}")
    return match
