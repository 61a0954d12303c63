"""Jinja templates as data, and how they are rendered: byte for byte the same wherever it is done."""

from __future__ import annotations

import functools
import importlib.resources
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Template:
    """``text`` is Jinja source; ``name`` is for error messages."""

    name: str
    text: str


@functools.cache
def read_template(package: str, path: str) -> Template:
    """The template at ``path`` below a package's folder."""
    return Template(path, importlib.resources.files(package).joinpath(*path.split("/")).read_text("utf-8"))


def render_template(template: Template, variables: Mapping[str, object]) -> str:
    """The template's text with these variables. jinja2.UndefinedError for an undefined variable."""
    return _compiled(template).render(variables)


@functools.cache
def _compiled(template: Template) -> jinja2.Template:
    import jinja2  # takes longer than listing kernels does

    environment = jinja2.Environment(
        loader=jinja2.DictLoader({template.name: template.text}),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    return environment.get_template(template.name)
