"""The dispatcher's table of a problem's fields: names, ranges and words, for checks and JSON; and struct sizes."""

from __future__ import annotations

import ctypes
import textwrap
from typing import Any

from kernelwright.problems.fields import INT64_MAX, Header, Member, Struct
from kernelwright.problems.structs import members

_TYPES = {"uint32_t": "kUint32", "uint64_t": "kUint64", "int64_t": "kInt64", "double": "kReal"}
# Defaults of the last members of Field in fields.hpp, by index.
_DEFAULTS = {4: "0", 5: "INT64_MIN", 6: "INT64_MAX", 7: "nullptr", 8: "nullptr", 9: "0", 10: "false"}


def table_text(header: Header, path: str, module: str) -> str:
    """Return the header at ``path``; ``module`` is the module of the description."""
    guard = path.upper().replace("/", "_").replace(".", "_")
    structs = [one for one in header.parts if isinstance(one, Struct)]
    included = sorted((header.path, "kernelwright/dispatcher/support/fields.hpp"))
    includes = "".join(f'#include "{name}"\n' for name in included)
    sizes = "".join(
        f'static_assert(sizeof({one.c_name}) == {struct_bytes(one)}, "{one.c_name} is as its description");\n'
        for one in structs
    )
    tables = "".join(_table(one) for one in structs if one.op)
    return (
        f"// Fields of the problems of {header.path}.\n"
        f"// Made of {module} by `kernelwright headers`: edit that.\n"
        f"#ifndef {guard}\n#define {guard}\n\n"
        f"{includes}\n"
        f"namespace kernelwright {{\n\n{sizes}{tables}\n}}  // namespace kernelwright\n\n#endif  // {guard}\n"
    )


def struct_bytes(struct: Struct) -> int:
    """Return the size of a struct. ValueError for padding between its members: problems are hashed as memory."""
    inner = {one.c_type: _made(one.field.type) for one in struct.members.values() if isinstance(one.field.type, Struct)}
    fields = members(struct, inner)
    made = type(struct.c_name, (ctypes.Structure,), {"_fields_": fields})
    if sum(ctypes.sizeof(kind) for _, kind in fields) != ctypes.sizeof(made):
        raise ValueError(f"{struct.c_name} has padding; allowed: members that follow each other without a gap")
    return ctypes.sizeof(made)


def _made(struct: Struct) -> Any:
    return type(struct.c_name, (ctypes.Structure,), {"_fields_": members(struct)})


def _table(struct: Struct) -> str:
    words = struct.c_name.removeprefix("kw_").split("_")
    rows = "".join(f"{_row(struct, one)},\n" for one in struct.members.values() if _is_read(one))
    return f"\nconstexpr Field k{''.join(map(str.capitalize, words))}Fields[] = {{\n{rows}}};\n"


def _row(struct: Struct, member: Member) -> str:
    field, enum = member.field, member.enum
    least = _number(enum.first if enum else field.least)
    most = _number(member.most)
    named = (enum.function if enum else "") or "nullptr"
    axes = f'"{field.axes}"' if field.axes else "nullptr"
    counted = f"offsetof({struct.c_name}, {field.counted})" if field.counted else "0"
    place = f"offsetof({struct.c_name}, {member.name})"
    hidden = "false" if field.in_json else "true"
    length = len(field.type.members) if isinstance(field.type, Struct) else member.length or 0
    cells = [f'"{member.name}"', place, _type(member), str(length)]
    cells += [least, most, named, axes, counted, hidden]
    while cells[-1] == _DEFAULTS.get(len(cells)):
        cells.pop()
    return textwrap.fill(f"{{{', '.join(cells)}}}", 119, initial_indent=" " * 4, subsequent_indent=" " * 5)


def _type(member: Member) -> str:
    """The type of a member; a struct within a problem counts as a row of numbers."""
    return "kInt64" if isinstance(member.field.type, Struct) else _TYPES.get(member.c_type, "")


def _is_read(member: Member) -> bool:
    """Whether the dispatcher shows a member or knows its range."""
    field = member.field
    ranged = member.enum or field.least is not None or field.most != INT64_MAX
    return bool(_type(member)) and member.name != "reserved" and (field.in_json or bool(ranged))


def _number(value: int | None) -> str:
    named = {None: "INT64_MIN", INT64_MAX: "INT64_MAX", INT64_MAX // 64: "INT64_MAX / 64"}
    return named.get(value, str(value))
