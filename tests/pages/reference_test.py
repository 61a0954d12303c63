"""The references have every public name: Python packages by topic, C headers by function."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

import pytest

from kernelwright import dispatch
from pages.pages import DOCS, ROOT

HEADERS = ROOT / "dispatcher_cpp/include/kernelwright"


@pytest.fixture(scope="module")
def c_reference() -> ModuleType:
    """The module of the documentation that is part of no package."""
    spec = importlib.util.spec_from_file_location("c_reference", DOCS / "c_reference.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    importlib.import_module("sys").modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_each_public_name_of_the_dispatcher_stands_below_one_topic() -> None:
    text = (DOCS / "reference/python/dispatch.md").read_text()
    named = re.findall(r"auto(?:class|function|exception):: kernelwright\.dispatch\.(\w+)\n", text)
    assert sorted([*named, "dtypes"]) == sorted(dispatch.__all__)
    assert text.index("dispatch.Dispatcher\n") < text.index("dispatch.KernelLibrary\n")


def test_each_exported_function_has_a_heading(c_reference: ModuleType) -> None:
    page = c_reference.sections(HEADERS)
    exported = set()
    for path in sorted(HEADERS.rglob("*.h")):
        if path.parent.name == "torch":
            continue  # between the dispatcher and the Python packages of the same wheel
        text = re.sub(r"^#.*", "", path.read_text(), flags=re.MULTILINE)
        exported |= set(re.findall(r"^[A-Z_]*EXPORT\b[^;{]*?\b(\w+)\(", text, re.MULTILINE))
    assert len(exported) > 80
    assert [name for name in sorted(exported) if f"\n### {name}\n" not in page] == []
    headings = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert len(headings) == len(set(headings)), "an anchor stands for one thing"


def test_a_section_has_the_comment_and_the_declaration(c_reference: ModuleType) -> None:
    header = """/* About. */
#ifndef H
#ifdef __cplusplus
extern "C" {
#endif
/* A limit. */
#define KW_MOST 4
static inline int kw_other(int a) {
  if (a) { return 1; }
  return 0;
}
/* A struct. */
typedef struct kw_pair {
  int a; /* one */
} kw_pair;
/* A function of
 * two. */
KW_EXPORT int kw_both(const kw_pair* pair,
                      int b);
#ifdef __cplusplus
}
#endif
#endif
"""
    made = c_reference.items(header)
    assert [(item.name, item.function) for item in made] == [("KW_MOST", False), ("kw_pair", False), ("kw_both", True)]
    assert made[0].text == "/* A limit. */\n#define KW_MOST 4"
    assert made[2].text.startswith("/* A function of\n * two. */\nKW_EXPORT int kw_both(")
