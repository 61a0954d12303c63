"""Jinja templates as data, and their rendering: byte for byte the same on every machine."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelwright.codegen.c_text import FILTERS, CText, UnprintableError, printed

if TYPE_CHECKING:
    import jinja2


# A comment is `// …` or `/* … */` without a variable; /*tile=*/, without a space, is the name of an argument.
_COMMENT = r"(?://(?:(?!\{[{%]|[%}]\}).)*$|/\* (?:(?!\{[{%]|[%}]\}|\*/).)*\*/)"
_COMMENT_LINE = re.compile(rf"^[ \t]*{_COMMENT}[ \t]*\n", re.MULTILINE)
_COMMENT_BEHIND = re.compile(rf'^((?:[^"\n]|"(?:[^"\\\n]|\\.)*")*?\S)[ \t]+{_COMMENT}[ \t]*$', re.MULTILINE)


@dataclass(frozen=True)
class Template:
    """A template. ``text`` is Jinja source; ``name`` is for error messages."""

    name: str
    text: str


@functools.cache
def read_template(package: str, path: str) -> Template:
    """Read the template at ``path`` below a package's folder, without its authors' comments."""
    text = importlib.resources.files(package).joinpath(*path.split("/")).read_text("utf-8")
    return Template(path, without_comments(text))


def without_comments(text: str) -> str:
    """Return a C or C++ template as its output is compiled and cached: an edited comment recompiles nothing."""
    return _COMMENT_BEHIND.sub(r"\1", _COMMENT_LINE.sub("", text))


def render_template(template: Template, variables: Mapping[str, object]) -> str:
    """Return the template's text with these variables.

    Words and numbers are printed as they are, everything else through the filters of
    :mod:`kernelwright.codegen.c_text`; UnprintableError for a value that no filter accepts. jinja2.UndefinedError for
    an undefined variable.
    """
    return str(rendered(template, variables))


def rendered(template: Template, variables: Mapping[str, object]) -> CText:
    """Return :func:`render_template` as a text that another template may print."""
    try:
        return CText(_compiled(template).render(variables))
    except UnprintableError as error:
        raise UnprintableError(f"template {template.name}: {error}") from None


@functools.cache
def _compiled(template: Template) -> jinja2.Template:
    import jinja2  # takes longer than listing kernels

    def finalize(value: object) -> object:
        # Not StrictUndefined: what `{{ a if b }}` is without b. The others raise when they are printed.
        if isinstance(value, jinja2.Undefined):
            return str(value)
        return printed(value)

    environment = jinja2.Environment(
        loader=jinja2.DictLoader({template.name: template.text}),
        undefined=jinja2.StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    # A closed list: no filter makes an acceptable text out of another, and Jinja2's own functions are absent.
    environment.filters = dict(FILTERS)
    environment.globals = {}
    return environment.get_template(template.name)
