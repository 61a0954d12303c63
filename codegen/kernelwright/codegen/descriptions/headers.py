"""Public headers: enumerations, constants and structs of a description as C99, formatted as clang-format does."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Sequence

from kernelwright.problems.fields import Constant, Field, Header, Struct, Verbatim, Word, c_type
from kernelwright.problems.shared import ITEM_BYTES, DType

_COLUMNS = 120
_MAX_SHOWN = 2**32  # limits above come from arithmetic and are not shown
_BEGIN = '#ifdef __cplusplus\nextern "C" {\n#endif\n'
_END = "#ifdef __cplusplus\n}\n#endif\n"


def header_text(header: Header, module: str) -> str:
    """Return the whole header; ``module`` is the module of its description."""
    guard = header.path.upper().replace("/", "_").replace(".", "_")
    doc = f"{inspect.cleandoc(header.doc)}\n\nMade of {module} by `kernelwright headers`: edit that."
    includes = [f'#include "{name}"\n' for name in header.includes] or ["#include <stdint.h>\n"]
    parts = [_part(one) for one in header.parts]
    return (
        "\n".join([f"{_comment(doc)}#ifndef {guard}\n#define {guard}\n", "".join(includes), _BEGIN, *parts, _END])
        + f"#endif /* {guard} */\n"
    )


def _part(part: type[Word] | Constant | Struct | Verbatim) -> str:
    if isinstance(part, Verbatim):
        return part.text
    if isinstance(part, Constant):
        return f"{_above(part.doc)}#define {part.c_name} {part.value}{part.suffix}\n"
    if isinstance(part, Struct):
        return f"{_above(part.doc)}{_struct(part)}"
    bytes_of = _bytes(part) if part is DType else ""
    return _above(part.__doc__ or "") + _enum(part) + (_names(part) if part.function else "") + bytes_of


def _above(doc: str) -> str:
    return _comment(doc) if doc else ""


def _enum(enum: type[Word]) -> str:
    *_, last = enum
    code = [(f"  {one.c_name} = {one.number}{'' if one is last else ','}", one.meaning) for one in enum]
    one_line = f"typedef enum {enum.c_type} {{ {' '.join(line.strip() for line, _ in code)} }} {enum.c_type};\n"
    if not any(one.meaning for one in enum) and len(one_line) <= _COLUMNS:
        return one_line
    return f"typedef enum {enum.c_type} {{\n{_commented(code)}}} {enum.c_type};\n"


def _names(enum: type[Word]) -> str:
    word = enum.c_type.removeprefix("kw_").rpartition("_")[2]
    function = f"static inline const char* {enum.function}(uint32_t {word})"
    listed = ", ".join(f'"{one}"' for one in enum)
    line = f"  static const char* const names[] = {{{listed}}};\n"
    if len(line) <= _COLUMNS + 1 and [one.number for one in enum] == [*range(enum.first, enum.first + len(enum))]:
        place = f"{word} - {enum.first}u" if enum.first else word
        known = f"{place} < {len(enum)}u ? names[{place}]"
        return f'\n{function} {{\n{line}  return {known} : "unknown";\n}}\n'
    cases = "".join(f'    case {one.c_name}:\n      return "{one}";\n' for one in enum)
    return f'\n{function} {{\n  switch ({word}) {{\n{cases}    default:\n      return "unknown";\n  }}\n}}\n'


def _bytes(enum: type[Word]) -> str:
    word = enum.c_type.removeprefix("kw_")
    listed = ", ".join(str(ITEM_BYTES[one]) for one in enum)
    place = f"{word} - {enum.first}u"
    return (
        f"\n/* Bytes of an element; 0 if the {word} is unknown. */\n"
        f"static inline uint32_t {enum.c_type}_bytes(uint32_t {word}) {{\n"
        f"  static const uint32_t bytes[] = {{{listed}}};\n"
        f"  return {place} < {len(enum)}u ? bytes[{place}] : 0;\n}}\n"
    )


def _struct(struct: Struct) -> str:
    lines = [("  kw_problem base;", "")] if struct.op else []
    lines += [(_declared(one), _meaning(one)) for one in struct.fields]
    return f"typedef struct {struct.c_name} {{\n{_commented(lines)}}} {struct.c_name};\n"


def _declared(field: Field) -> str:
    length = field.length.c_name if isinstance(field.length, Constant) else field.length
    array = "" if length is None else f"[{length}]"
    return f"  {c_type(field)} {', '.join(name + array for name in field.names.split())};"


def _meaning(field: Field) -> str:
    """The comment of a field, which begins with its enumeration or its range."""
    if isinstance(field.type, type):
        kind = field.type.c_type
    elif (field.least, field.most) == (0, 1):
        kind = "0 or 1"
    elif field.most <= _MAX_SHOWN:
        kind = f"{field.least or 0} to {field.most}"
    else:
        kind = "" if field.least is None else f">= {field.least}"
    return "; ".join(filter(None, (kind, field.meaning)))


def _commented(lines: Sequence[tuple[str, str]]) -> str:
    """Lines with their comments: after the line, in one column for consecutive lines, else above it."""
    above = {place for place, (_, said) in enumerate(lines) if not said}
    while True:
        columns = _columns(lines, above)
        long = [at for at, column in columns.items() if column + len(lines[at][1]) + 6 > _COLUMNS]
        if not long:
            break
        above.add(max(long, key=lambda at: len(lines[at][1])))
    text = ""
    for place, (code, said) in enumerate(lines):
        if place in columns:
            text += f"{code.ljust(columns[place])}/* {said} */\n"
        else:
            text += (_comment(said, "  ") if said else "") + f"{code}\n"
    return text


def _columns(lines: Sequence[tuple[str, str]], above: set[int]) -> dict[int, int]:
    """The columns where comments after lines begin: one column for consecutive lines."""
    columns: dict[int, int] = {}
    run: list[int] = []
    for place in range(len(lines) + 1):
        if place < len(lines) and place not in above:
            run.append(place)
            continue
        columns |= dict.fromkeys(run, max((len(lines[at][0]) for at in run), default=0) + 1)
        run = []
    return columns


def _comment(doc: str, indent: str = "") -> str:
    """Format paragraphs in lines of at most 120 columns; those with indented lines stay as they are."""
    lines: list[str] = []
    for paragraph in inspect.cleandoc(doc).split("\n\n"):
        verbatim = any(line.startswith("  ") for line in paragraph.splitlines())
        lines += ["", *(paragraph.splitlines() if verbatim else textwrap.wrap(paragraph, _COLUMNS - len(indent) - 3))]
    first, *rest = lines[1:]
    if not rest and len(indent) + len(first) + 6 <= _COLUMNS:
        return f"{indent}/* {first} */\n"
    lines = [f"{indent}/* {first}", *(f"{indent} * {line}".rstrip() for line in rest)]
    end = f"\n{indent} */\n" if len(lines) > 4 or len(lines[-1]) + 3 > _COLUMNS else " */\n"
    return "\n".join(lines) + end
