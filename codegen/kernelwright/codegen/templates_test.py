"""Every template refuses every hostile value of every variable that it prints."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2 import nodes

from kernelwright import arch as archs
from kernelwright import codegen
from kernelwright.codegen import templates
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.c_text import UnprintableError
from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import read_model, write_model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.operation import operation
from kernelwright.codegen.planning.compile_plan import kernel_actions, render_table
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.templates import Template, render_template, without_comments
from kernelwright.codegen.testing.hostile import HOSTILE, MARK

ROOT = Path(codegen.__file__).parent
ARCHS = ("gfx942", "sm_90a", "x86_64_v3")
SETS = dict.fromkeys(("gemm:essential", "convolution:essential", "attention:all", "norm:default"), ARCHS)
# Templates of sources, the slowest last. Jinja escapes those of pages.
SOURCES = (path for path in ROOT.rglob("*.jinja") if not path.name.endswith(".html.jinja"))
FILES = sorted(SOURCES, key=lambda path: ("heuristics" in path.parts, path))
Variables = Mapping[str, object]
Samples = dict[str, list[tuple[Template, Variables]]]


class Recorded:
    """A compiled template that keeps the variables it was rendered with."""

    def __init__(self, template: Template, recorded: Samples, compiled: Callable[[Template], Any]) -> None:
        self.template, self.samples, self.compiled = template, recorded, compiled(template)

    def render(self, variables: Variables) -> str:
        kept = self.samples.setdefault(self.template.text, [])
        if len(kept) < 2:
            kept.append((self.template, variables))
        text: str = self.compiled.render(variables)
        return text


@contextlib.contextmanager
def recording() -> Iterator[Samples]:
    """What is rendered meanwhile: templates and variables, by the text of the template."""
    recorded: Samples = {}
    compiled = templates._compiled
    with pytest.MonkeyPatch().context() as patched:
        patched.setattr(templates, "_compiled", lambda template: Recorded(template, recorded, compiled))
        yield recorded


@functools.cache
def samples() -> Samples:
    """What the generator renders for kernels and libraries."""
    with recording() as recorded:
        for name, of in SETS.items():
            for arch in map(archs.load, of):
                kernels = expand_set(name, arch).kernels
                for kernel in _of_each_kind(kernels):
                    kernel_actions(kernel, arch, backend_for(arch, {}))
                render_table("lib", arch, kernels[:3], ["first", "second"])
    return recorded


def _of_each_kind(kernels: Sequence[Any]) -> list[Any]:
    """The first kernel of each variant."""
    return list({operation(kernel.spec.op).variant(kernel.spec): kernel for kernel in reversed(kernels)}.values())


def models(folder: Path) -> list[tuple[Template, Variables]]:
    """What it renders for models."""
    with recording() as recorded:
        for op in ("gemm", "attention"):
            known = {"kernel_hull": {name: [0.0, 0.0] for name in schema_of(op).kernel_features}}
            write_model(random_content(1, op=op, trees=2) | known, folder / "m.json")
            emit(read_model(folder / "m.json"), "name", part_of_library=op == "gemm")
    (rendered,) = recorded.values()
    return rendered


class Overridden:
    """An object whose member at a path is another value."""

    def __init__(self, inner: object, path: Sequence[str], value: object) -> None:
        self._inner, self._path, self._value = inner, path, value

    def __getattr__(self, name: str) -> object:
        member = getattr(self._inner, name)
        if name != self._path[0]:
            return member
        return Overridden(member, self._path[1:], self._value) if len(self._path) > 1 else self._value


def paths(template: Template) -> set[tuple[str, ...]]:
    """The variables of a template and the members that it reads: ``("spec", "tile", "m")``."""
    tree = jinja2.Environment().parse(template.text)
    chains: set[tuple[str, ...]] = {(node.name,) for node in tree.find_all(nodes.Name)}
    for node in tree.find_all(nodes.Getattr):
        chain: list[str] = []
        at: nodes.Node = node
        while isinstance(at, nodes.Getattr):
            chain.insert(0, at.attr)
            at = at.node
        if isinstance(at, nodes.Name):
            chains.add((at.name, *chain))
    return chains


def value_at(variables: Variables, path: Sequence[str]) -> object:
    value = variables[path[0]]
    for name in path[1:]:
        value = getattr(value, name)
    return value


def twisted(value: object, text: str) -> Iterator[object]:
    """The hostile text in place of a value, of each of its keys and of each of its innermost members."""
    if isinstance(value, Mapping):
        for key in value:
            yield {text if one == key else one: other for one, other in value.items()}
            yield from ({**value, key: inner} for inner in twisted(value[key], text))
    elif isinstance(value, list | tuple) and value:
        for inner in twisted(value[0], text):
            yield [inner, *value[1:]]
    else:
        yield text


def attacked(template: Template, variables: Variables) -> int:
    """Render with each variable replaced; how many times that was refused."""
    refused = 0
    known = [path for path in sorted(paths(template)) if path[0] in variables and path[-1] not in ("items", "kernels")]
    for path in known:
        try:
            held = value_at(variables, path)
        except AttributeError:
            continue
        for text in HOSTILE:
            for value in twisted(held, text):
                spoiled = Overridden(variables[path[0]], path[1:], value) if len(path) > 1 else value
                try:
                    made = render_template(template, {**variables, path[0]: spoiled})
                except UnprintableError:
                    refused += 1
                except (jinja2.UndefinedError, TypeError, AttributeError):
                    continue
                else:
                    literal = f'"{text}"'.replace("\\", "\\\\")  # what `string` lets pass stays inside its quotes
                    assert MARK not in made.replace(literal, "").replace(_quoted(text), ""), (template.name, path, text)
    return refused


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@pytest.mark.thorough(keep=5)
@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_hostile_values_of_every_variable_are_refused(file: Path, tmp_path: Path) -> None:
    text = without_comments(file.read_text("utf-8"))
    recorded = models(tmp_path) if file.name == "heuristic.c.jinja" else samples().get(text, [])
    assert recorded, f"no kernel of {', '.join(SETS)} is rendered by {file.name}: add a sample"
    # One that prints nothing but another one's text.
    least = 0 if text == "{{ header_text }}" else len(HOSTILE)
    assert all(attacked(*one) >= least for one in recorded)


@pytest.mark.parametrize(
    "source",
    [
        "{{ a }}",
        '{{ a ~ "b" }}',
        "{% set b = a %}{{ b }}",
        "{% set b %}{{ a }}{% endset %}{{ b }}",
        "{% macro m() %}{{ a }}{% endmacro %}{{ m() }}",
        "{% filter upper %}{{ a }}{% endfilter %}",
        "{{ [a] | join }}",
        "{{ a if a else 1 }}",
        "{{ '%s' % a }}",
        "{{ a.strip() }}",
        "{{ [a] }}",
    ],
)
def test_no_construct_of_templates_prints_plain_text(source: str) -> None:
    for text in HOSTILE:
        with pytest.raises(UnprintableError, match=r"template t: .* cannot stand in generated source"):
            render_template(Template("t", source), {"a": text})


@pytest.mark.parametrize("source", ["{{ a | safe }}", "{{ a | replace('x', 'y') }}", "{{ a | e }}", "{{ a | tojson }}"])
def test_filters_of_jinja_are_not_there(source: str) -> None:
    with pytest.raises(jinja2.TemplateAssertionError, match="No filter named"):
        render_template(Template("t", source), {"a": "x"})


def test_checked_text_is_made_in_two_places() -> None:
    """Whoever could mark a text as checked could print anything."""
    made = {path.name for path in ROOT.rglob("*.py") if "CText(" in path.read_text("utf-8")}
    assert {name for name in made if not name.endswith("_test.py")} == {"c_text.py", "templates.py"}


def test_sources_are_rendered_by_templates_alone() -> None:
    """Text that Python puts together meets no filter: ``RenderedFile`` takes what a template or ``emit`` returns."""
    allowed = {"render.py", "models.py", "heuristic.py", "compile_plan.py", "ck_tile.py", "actions.py"}
    made = {path.name for path in ROOT.rglob("*.py") if "RenderedFile(" in path.read_text("utf-8")}
    assert {name for name in made if not name.endswith("_test.py")} <= allowed


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("// why\nint a;\n", "int a;\n"),
        ("  /* why */\nint a;\n", "int a;\n"),
        ('int a;  // why, in "words"\n', "int a;\n"),
        ("int a; /* why */\nint b;\n", "int a;\nint b;\n"),
        ("#ifndef X  // why\n", "#ifndef X\n"),
        ("}  // namespace\n}  // namespace a\n", "}\n}\n"),
        ('a = "http://x";\n', 'a = "http://x";\n'),
        ('a = "x // y" + b;  // why\n', 'a = "x // y" + b;\n'),
        ("// {{ name }} for {{ arch }}.\nint a;\n", "// {{ name }} for {{ arch }}.\nint a;\n"),
        ("f(/*tile*/ 1, /*warp tile=*/2)\n", "f(/*tile*/ 1, /*warp tile=*/2)\n"),
        ("{% if a // b %}\n", "{% if a // b %}\n"),
    ],
)
def test_comments_of_a_template_are_not_rendered(text: str, kept: str) -> None:
    assert without_comments(text) == kept


def test_an_edited_comment_of_any_template_renders_the_same() -> None:
    for path in FILES:
        text = path.read_text("utf-8")
        commented = "// of today\n/* and of tomorrow */\n" + text.replace(";\n", ";  // an end\n")
        assert without_comments(commented) == without_comments(text), path
