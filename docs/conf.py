"""Settings of Sphinx. ``./pants package docs::`` runs it in a sandbox. From a checkout, with the requirements of
3rdparty/python/docs.txt installed: ``python -m sphinx --fail-on-warning docs dist/docs/html``."""

import json
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import get_type_hints

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.ext.autodoc import mock
from sphinx.util.typing import stringify_annotation

ROOT = Path(__file__).resolve().parent.parent
HEADERS = "dispatcher_cpp/include/kernelwright"
PACKAGES = ("arch", "dispatch", "jit", "simulator", "torch")

for folder in ("arch", "codegen", "bindings", "jit", "simulator", "tile_engine"):
    sys.path.insert(0, str(ROOT / folder))

sys.path.insert(0, str(ROOT / "docs"))
import c_reference  # noqa: E402

project = "kernelwright"
release = tomllib.loads((ROOT / "packages/kernelwright.toml").read_text("utf-8"))[
    "project"
]["version"]

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_click",
    "sphinxarg.ext",
    "sphinx_copybutton",
]
highlight_language = "none"
smartquotes = False  # would turn the hyphens of options into dashes

myst_heading_anchors = 3
myst_ref_domains = ["std", "py"]

autodoc_default_options = {"members": True, "imported-members": True}
autodoc_member_order = "bysource"  # of a package: the order of __all__
autodoc_preserve_defaults = True
add_module_names = False
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 140

html_theme = "furo"
html_title = f"{project} {release}"
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
# The pages are the same bytes on every day: no date, no year.
html_last_updated_fmt = None
html_show_copyright = False


def load_public_names() -> None:
    """Load every public name, which a package may do on first use, and list exceptions after all other names.

    Torch is a stand-in: only annotations name what it has.
    """
    for package in PACKAGES:
        with mock(["torch"]):
            module = import_module(f"kernelwright.{package}")
        members = {name: getattr(module, name) for name in module.__all__}
        vars(module).update(members)
        module.__all__ = sorted(
            members, key=lambda name: (is_exception(members[name]), name)
        )


def is_exception(value):
    """Return whether a public name is an exception class."""
    return isinstance(value, type) and issubclass(value, Exception)


def add_bases(app, what, name, value, options, lines):
    """State the base classes of exceptions, which is what an ``except`` clause needs to know."""
    if is_exception(value):
        lines += [
            "",
            f"Bases: {', '.join(f':class:`{base.__name__}`' for base in value.__bases__)}.",
        ]


def shorten_signature(app, what, name, value, options, signature, returns):
    """Print the fields of a pydantic model without the bounds that validation adds, and factories as ``...``."""
    if hasattr(value, "model_fields"):
        types = get_type_hints(value)
        fields = [
            f"{field}: {stringify_annotation(types[field], 'smart')}"
            for field in value.model_fields
        ]
        return f"(*, {', '.join(fields)})", returns
    return signature and signature.replace("<factory>", "..."), returns


def skip_model_config(app, what, name, value, skip, options):
    """Leave out what pydantic adds to every model."""
    return True if name == "model_config" else None


def list_headers(app, docname, source):
    """Add the headers, functions and types to the page of the C API."""
    if docname == "reference/c_api":
        source[0] += "\n" + c_reference.sections(ROOT / HEADERS)


def unlink_repository(app, doctree):
    """Print links to folders and Markdown files outside docs/ as text: these pages are read without the repository.

    A link to a path that does not exist stays, and Sphinx warns of it.
    """
    folder = Path(app.srcdir, app.env.docname).parent
    for link in list(doctree.findall(pending_xref)):
        target = (folder / link["reftarget"]).resolve()
        if (
            link.get("reftype") == "myst"
            and target.exists()
            and not target.is_relative_to(app.srcdir)
        ):
            link.replace_self(nodes.inline("", "", *link.children))


def load_texts(app, pagename, templatename, context, doctree):
    """Have the page of the search load the texts of all pages, of which it shows excerpts without a server."""
    if pagename == "search":
        app.add_js_file("page_texts.js")
        app.add_js_file("excerpts.js")


def write_texts(app, exception):
    """Write the texts of all pages for ``excerpts.js``. Of equal last names, the longer path comes first."""
    if exception is None:
        names = sorted(app.env.found_docs, key=lambda name: (-name.count("/"), name))
        texts = {f"{name}.html": app.env.get_doctree(name).astext() for name in names}
        script = f"const PAGE_TEXTS = {json.dumps(texts)};\n"
        Path(app.outdir, "_static/page_texts.js").write_text(script, "utf-8")


def setup(app):
    """Connect the functions above to the events of Sphinx."""
    load_public_names()
    app.connect("autodoc-process-signature", shorten_signature)
    app.connect("autodoc-skip-member", skip_model_config)
    app.connect("autodoc-process-docstring", add_bases)
    app.connect("source-read", list_headers)
    app.connect("doctree-read", unlink_repository)
    app.connect("html-page-context", load_texts)
    app.connect("build-finished", write_texts)
