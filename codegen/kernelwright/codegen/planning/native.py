"""The plan of a plain shared library: C and C++ sources, compiled and linked by the host toolchain."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, cast

from kernelwright.codegen.actions import Action, checked_path
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, toolchain
from kernelwright.codegen.planning.describe import action_json
from kernelwright.codegen.toolchains.host import HostToolchain
from kernelwright.codegen.violations import SpecError, typed

HEADERS_TREE = "dispatcher"
"""The tree with every header a plain library may include: the C ABI and the dispatcher's own."""


_KEYS = {"stage", "output", "sources", "link", "toolchains"}


def respond_native(raw: dict[str, Any]) -> dict[str, Any]:
    """Respond to a request of stage ``native`` (see :mod:`kernelwright.codegen.interface.protocol`)."""
    if set(raw) - _KEYS or not {"output", "sources"} <= set(raw):
        raise SpecError(f"a native request has the keys {', '.join(sorted(_KEYS))}; link and toolchains are optional")
    output, sources, link = raw["output"], raw["sources"], raw.get("link", [])
    if not isinstance(output, str):
        raise SpecError(f"request key 'output' must be a path, not {output!r}")
    for key, value in (("sources", sources), ("link", link)):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise SpecError(f"request key {key!r} must be a list of texts, not {value!r}")
    for item in link:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.+-]*", item):
            raise SpecError(f"request key 'link' has {item!r}; allowed: names of C libraries such as 'dl'")
    chosen = typed(raw, "toolchains", dict, {})
    host = toolchain("host", chosen.get("host", DEFAULT_TOOLCHAINS["host"]))
    actions = native_actions(output, sources, link, cast(HostToolchain, host))
    return {"actions": [action_json(action) for action in actions]}


def native_actions(output: str, sources: Sequence[str], link: Sequence[str], host: HostToolchain) -> tuple[Action, ...]:
    """Return actions that compile ``sources`` (``.c`` as C99, ``.cpp`` as C++17) and link them into ``output``.

    Raises SpecError for no sources, another suffix, or a path that a plan may not have.
    """
    checked_path(output, "native library")
    if not sources:
        raise SpecError(f"native library {output!r} has no sources")
    actions = []
    objects = []
    for source in sorted(sources):
        suffix = PurePosixPath(checked_path(source, "native source")).suffix
        if suffix not in (".c", ".cpp"):
            raise SpecError(f"native source {source!r} has the suffix {suffix!r}; allowed: .c, .cpp")
        built = f"{source}.o"
        compile = host.compile_c if suffix == ".c" else host.compile_cxx
        command = compile(source, built, trees=(HEADERS_TREE,))
        actions.append(command.action(f"{source}:compile", f"Compile {source}", [source], [built]))
        objects.append(built)
    linked = host.link_shared(objects, output, link, compiler_rt=True)  # whatever the sources are
    actions.append(linked.action(f"{output}:link", f"Link {output}", objects, [output]))
    return tuple(actions)
