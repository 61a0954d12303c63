"""The page of BUILD targets and their fields, from the data of ``./pants help``. It is checked in; to write it:

PYTHONPATH=rules $(./pants --launcher-python) -m kernelwright.pants.testing.target_pages
"""

from __future__ import annotations

from pathlib import Path
from typing import Iterable

from kernelwright.pants.contents import target_types
from pants.engine.target import Tags
from pants.engine.unions import UnionMembership
from pants.help.help_info_extracter import TargetFieldHelpInfo, TargetTypeHelpInfo

PAGE = Path(__file__).resolve().parents[4] / "docs/reference/targets.md"
# Fields of every Pants target.
_COMMON = ("description", "tags")
_INTRODUCTION = """# BUILD targets

The targets that `kernelwright-pants` adds, with what `./pants help TARGET` says of them. Every target also has the
fields `name`, `description` and `tags` of Pants. A field without a default may be left out unless it is required;
kernels then have the architecture's.

"""


def helps() -> list[TargetTypeHelpInfo]:
    """Return Pants' help for each target that may appear in a BUILD file, in the order of the plugin."""
    membership = UnionMembership({})
    return [
        TargetTypeHelpInfo.create(target, provider="", union_membership=membership, get_field_type_provider=None)
        for target in target_types()
        if Tags in target.core_fields and not target.alias.startswith("_") and target.alias != "generated_kernel"
    ]


def page() -> str:
    """Return the page as Markdown."""
    known = helps()
    listed = "".join(f"| [`{one.alias}`](#{one.alias}) | {_line(one.summary)} |\n" for one in known)
    return f"{_INTRODUCTION}| target | |\n|---|---|\n{listed}\n" + "\n".join(_section(one) for one in known)


def _section(one: TargetTypeHelpInfo) -> str:
    fields = [field for field in one.fields if field.alias not in _COMMON]
    rows = "".join(_row(field) for field in sorted(fields, key=lambda field: not field.required))
    text = one.description.strip()
    return f"## {one.alias}\n\n{text}\n\n| field | value | default | |\n|---|---|---|---|\n{rows}"


def _row(field: TargetFieldHelpInfo) -> str:
    default = "required" if field.required else f"`{field.default}`" if field.default else ""
    value = _words(_kind(word) for word in field.type_hint.replace(" | None", "").split(" | "))
    return f"| `{field.alias}` | {value} | {_line(default)} | {_line(field.description)} |\n"


def _kind(hint: str) -> str:
    """Return a Python type as a BUILD file names it."""
    return hint.replace("Iterable[", "[") if hint.startswith("Iterable[") else hint


def _words(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _line(text: str) -> str:
    """Return a text as a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
