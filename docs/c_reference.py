"""Sections of the public C headers for the page of the C API: one for each function and type, with its comment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

# Programs include these; further headers of the folder are what kernel libraries share.
HEADERS = (
    "dispatcher.h",
    "dispatcher/gemm.h",
    "abi.h",
    "gemm.h",
    "convolution.h",
    "attention.h",
    "norm.h",
    "dtypes.h",
    "epilogue.h",
    "heuristic.h",
    "dispatcher/gemm_lib.h",
    "dispatcher/conv_lib.h",
    "dispatcher/fmha_lib.h",
)
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_DIRECTIVE = re.compile(r"#(?:[^\n]*\\\n)*[^\n]*")
_CONSTANT = re.compile(r"#define (KW_[A-Z_]+|DISPATCHER_[A-Z_]+) +[\w\"(-]")
_EXPORTED = re.compile(r"^[A-Z_]*EXPORT\b[^;{]*?\b(\w+)\(", re.DOTALL)
_TYPE = re.compile(
    r"^typedef\s+(?:struct|enum|union)\s+\w*\s*\{.*\}\s*(\w+)\s*;"  # with members
    r"|^struct\s+(\w+)\s*\{.*\}\s*;"
    r"|^typedef\s+struct\s+\w+\s+(\w+)\s*;"  # an opaque one
    r"|^typedef\s+[^{]*?\(\*(\w+)\)\(",  # a function
    re.DOTALL,
)


@dataclass(frozen=True)
class Item:
    """A declaration with the comment above it. ``function`` tells exported functions from types and constants."""

    name: str
    text: str
    function: bool


def introduction(header: str) -> str:
    """The first comment of a header, without its marks."""
    comment = _COMMENT.search(header)
    assert comment is not None
    lines = [
        re.sub(r"^ ?\*? ?", "", line).rstrip() for line in comment[0][2:-2].splitlines()
    ]
    return "\n".join(lines).strip()


def items(header: str) -> list[Item]:
    """The functions, types and constants of a header in its order; a type's declaration and definition are one item."""
    by_name: dict[str, Item] = {}
    comment = ""
    for piece in _pieces(header):
        if piece.startswith("/*"):
            comment = piece
            continue
        function, kind = (
            _EXPORTED.match(piece),
            _TYPE.match(piece) or _CONSTANT.match(piece),
        )
        name = (
            function[1]
            if function
            else next(filter(None, kind.groups()), "")
            if kind
            else ""
        )
        if name.endswith(("_EXPORT", "_HIDDEN")):
            name = ""  # how functions are declared
        if name:
            text = f"{comment}\n{piece}".strip()
            known = by_name.get(name)
            by_name[name] = Item(
                name, f"{known.text}\n{text}" if known else text, function is not None
            )
        comment = ""
    return list(by_name.values())


def sections(folder: Path, headings: str = "##") -> str:
    """Markdown: a section for each header, and below it one for each function and type, named as it is."""
    made = []
    for name in HEADERS:
        header = (folder / name).read_text("utf-8")
        made.append(
            f"{headings} kernelwright/{name}\n\n```text\n{introduction(header)}\n```\n"
        )
        made += [
            f"{headings}# {item.name}\n\n```c\n{item.text}\n```\n"
            for item in items(header)
        ]
    return "\n".join(made)


def _pieces(header: str) -> list[str]:
    """Comments between declarations, declarations up to their end, and lines of the preprocessor."""
    pieces: list[str] = []
    text = re.sub(
        r'^#ifdef __cplusplus\n(?:extern "C" \{|\})\n#endif\n',
        "",
        header,
        flags=re.MULTILINE,
    )
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        line = _DIRECTIVE.match(text, at)
        end = (
            line.end()
            if line
            else text.index("*/", at) + 2
            if text.startswith("/*", at)
            else _end(text, at)
        )
        pieces.append(text[at:end].strip())
        at = end
    return pieces


def _end(text: str, at: int) -> int:
    """Where a declaration ends that begins here: behind its semicolon, or behind the body of a function."""
    depth = 0
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
        if depth == 0 and (
            text[at - 1] == ";"
            or (text[at - 1] == "}" and not text[at:].lstrip(" ")[:1].isalnum())
        ):
            # A comment behind a declaration, on its line, belongs to it.
            rest = re.match(r"[ ;]*(?:/\*[^\n]*\*/)?(?=\n)", text[at:])
            return at + (rest.end() if rest else 0)
    return at
