from __future__ import annotations

from typing import Any

import pytest

from kernelwright.codegen.interface.respond import respond
from kernelwright.codegen.violations import SpecError

GOOD: dict[str, Any] = {"stage": "native", "output": "p/libx.so", "sources": ["b.cpp", "a.c"], "link": ["dl"]}


def test_sources_are_compiled_and_linked() -> None:
    actions = respond(GOOD)["actions"]
    assert [action["outputs"] for action in actions] == [["a.c.o"], ["b.cpp.o"], ["p/libx.so"]]
    assert actions[2]["inputs"] == ["a.c.o", "b.cpp.o"] and "-ldl" in actions[2]["argv"]
    assert all("dispatcher" in action["trees"] for action in actions[:2])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sources": []}, "'p/libx.so' has no sources"),
        ({"sources": ["a.f"]}, "native source 'a.f' has the suffix '.f'; allowed: .c, .cpp"),
        ({"sources": "a.c"}, "'sources' must be a list of texts"),
        ({"link": [1]}, "'link' must be a list of texts"),
        ({"output": None}, "'output' must be a path"),
        ({"toolchains": {"host": "gcc"}}, "unknown host toolchain 'gcc'"),
        ({"toolchains": []}, "'toolchains' must be a dict"),
        ({"link": ["dl -Wl,-z,execstack"]}, "'link' has 'dl -Wl,-z,execstack'; allowed: names of C libraries"),
        ({"output": "../x.so"}, "native library '../x.so' leaves the working directory"),
        ({"output": "/tmp/x.so"}, "'/tmp/x.so' is absolute; allowed: a relative path"),
        ({"output": "a\nb.so"}, r"'a\\nb.so' has an unprintable character"),
        ({"output": "a//b.so"}, "shortest spelling"),
        ({"output": ""}, "'' is empty"),
        ({"output": "ü" * 200}, "is too long"),
        ({"output": "\udc80.so"}, "unprintable"),
        ({"sources": ["-o.c"]}, "starts with '-o', which compilers read as something else"),
        ({"sources": ["@files.c"]}, "starts with '@f'"),
        ({"sources": ["__zig/x.c"]}, "starts with '__'"),
        ({"flags": ["-O0"]}, "a native request has the keys"),
    ],
)
def test_wrong_requests_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        respond({**GOOD, **changes})


def test_paths_may_be_in_any_script() -> None:
    actions = respond({**GOOD, "output": "größe/lib 核.so", "sources": ["größe/ядро.c"]})["actions"]
    assert [action["outputs"] for action in actions] == [["größe/ядро.c.o"], ["größe/lib 核.so"]]
