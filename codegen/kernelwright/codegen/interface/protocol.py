"""What ``kernelwright plan`` and ``kernelwright bundle`` read and write, for tools that run plans themselves.

Request of ``kernelwright plan --request FILE --response FILE`` (a JSON object, unknown keys are errors)::

    stage        "expand": which kernels?   "plan": which files and commands?
    name         library name, a C identifier; "plan" only
    kernels      [{"arch": "gfx942", "spec": {…}, "origin": "where it was written, for messages", "limits": {…}}, …],
                 the last two optional (see kernelwright.codegen.resources.limits); either this,
    archs        ["gfx942", …]                               or archs and exactly one of
    set            a set, such as "gemm:essential", or "fp16_rcr_compute", which one operation has
    config         a configuration: an object, or the path of a JSON file (see kernelwright.codegen.selecting.expand)
    specs          [{…}, …] each for every arch
    problems       {"trace": …, "budget_kernels": …, …}: see kernelwright.codegen.selecting.recorded.choice
    filter       optional expression over kernels (see kernelwright.codegen.selecting.filters)
    limits       optional limits for all kernels of a set, config or specs
    toolchains   optional, {"host": "zig", "hip": "wheel", "cuda": "clang"}; a word may name a compiler of the machine,
                 "system" or "system:/usr/bin/g++", and an object names it with the digest that it must have:
                 {"choice": "system", "path": …, "fingerprint": …}
    arch_files   optional paths of architecture files to know beside the shipped ones
    models       optional paths of trained selection models; "plan" only. A library contains those for its architecture

A spec may leave defaults out (see kernelwright.codegen.selecting.specs); responses always hold every field.

Response to "expand"::

    {"kernels": [{"arch", "name", "identity", "features", "spec"}, …],          sorted by arch, then name; "limits"
                                                                                 where some are stated
     "dropped": [{"arch", "rule", "count"}, …]}          combinations of a config that a rule refused

Response to "plan"::

    {"libraries": [{                                                            one per arch, sorted
        "name", "arch", "backend", "abi_version", "device", "wave_size", "compute_unit",
        "library": "gfx942/libgemm.so",
        "files":   [{"path", "text"}, …],
        "actions": [{"id", "description", "argv", "inputs", "outputs", "trees", "env": [[key, value], …], "caches",
                     "memory_mb"}, …],
        "objects": [path, …],
        "groups":  [{"output": path, "kernels": [name, …]}, …],   objects that a large library links in two steps
        "reports": {kernel name: path, …},
        "toolchains": {"hip": "identity in one line", …},
        "kernels": [{"arch", "name", "identity", "features", "spec", "header", "objects", "report", "counts",
                     "expects"}, …]}, …]}
                                                                                 "limits" where some are stated
                                                       and, where it has some, "models": [{"name", "op", "dtype",
                                                       "arch", "sha256"}, …]

A request of stage "native" has ``output``, ``sources`` (C and C++ files), optionally ``link`` (["dl", …]) and
``toolchains``; the response holds the ``actions`` that make the shared library ``output``.

A request of stage "heuristic" has ``model``, the path of a trained selection model, ``output`` and optionally
``toolchains``; the response holds the ``files`` and ``actions`` that make the shared library ``output``.

A request of stage "headers" has no other key; the response {"files": {path: text}} holds the headers that actions see
in the trees of our own sources, where the generator was installed from its wheel.

A request of stage "check_set" has a ``set`` and ``archs``; the response {"problems": [sentence, …]} names each kernel
of the set that another set promises to contain and does not.

A request of stage "archs" has no other key; the response {"archs": [{"name", "kind", "backend", "target", "device",
"operations", "simulated"}, …]} lists every architecture, those of ``KERNELWRIGHT_ARCH_PATH`` last. ``kind`` is that of
its devices: "cpu", "cuda" or "hip".

A request of stage "tree" has the ``name`` of a tree that is made of another one, which stands at ``__<its name>``; the
response {"files": {path: text}} holds its files.

A request of stage "compile_commands" has ``kernels`` and optionally ``toolchains`` as above; ``directory``, the
absolute path where files and trees will stand; and optionally ``include``, the absolute path of a folder with this
project's headers, beside which ``launchers`` lies. Response (see kernelwright.codegen.interface.compile_commands)::

    {"commands": [{"directory", "file", "arguments"}, …],          the content of a compile_commands.json
     "files":    [{"path", "text"}, …],                             generated files, relative to ``directory``
     "trees":    {name: [glob, …], …}}                              what an editor reads of the trees at ``__<name>``

A request of stage "report" has ``manifests``, and optionally ``costs``, by what to call the libraries; the response
{"text": …, "libraries": […]} is what ``kernelwright info`` prints (see kernelwright.codegen.resources.report).

Every path is relative to the working directory of the build and starts with ``<arch>/``. Inputs of an action are
``files`` or outputs of other actions; ``trees`` appear at ``__<name>``, ``caches`` at ``__cache_<name>``. A first word
``__python`` stands for a Python that has this generator (see kernelwright.codegen.toolchains.python).

Request of ``kernelwright bundle --request FILE --response FILE``::

    stage        optional, "bundle"
    library      one entry of "libraries"; files and actions may be left out
    sha256       optional, {path: 64 hex digits} of the library and of objects, which then need not be there
    root         optional, the folder below which library, objects, reports and counts stand; "." unless given
    materials    optional, what the library was made of: [{"requirements": text of a hash-pinned requirements file},
                 {"files": {path: 64 hex digits}}, …]; the generator adds its own files

The response maps file names to texts: ``manifest.json`` and, given materials, ``provenance.json``.

Request of ``kernelwright wheel --request FILE --response FILE``, see kernelwright.codegen.packaging.wheels.

Exit codes: see :mod:`kernelwright.codegen.interface.exit_codes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.codegen.backends.registry import ToolchainChoice
from kernelwright.codegen.violations import SpecError, closest, typed

SOURCES = ("set", "config", "specs", "problems")
_KEYS = ("stage", "name", "kernels", "archs", *SOURCES, "filter", "limits", "toolchains", "arch_files", "models")
_STAGES = ("expand", "plan")


@dataclass(frozen=True)
class Request:
    """A checked request; ``source`` is None when ``kernels`` are listed."""

    stage: str
    name: str | None
    kernels: tuple[Mapping[str, Any], ...]
    archs: tuple[str, ...]
    source: tuple[str, Any] | None
    filter: str | None
    limits: Mapping[str, Any] | None
    toolchains: Mapping[str, ToolchainChoice]
    arch_files: tuple[str, ...]
    models: tuple[str, ...] = ()


def parse_request(raw: object) -> Request:
    """Check the shape of a request; SpecError names the key, what was found and what is allowed."""
    if not isinstance(raw, dict):
        raise SpecError(f"a request is a JSON object, not {type(raw).__name__}")
    for key in raw:
        if key not in _KEYS:
            raise SpecError(f"request has an unknown key {key!r}{closest(key, _KEYS)}; allowed: {', '.join(_KEYS)}")
    stage = raw.get("stage")
    if stage not in _STAGES:
        raise SpecError(f"request key 'stage' is {stage!r}{closest(stage, _STAGES)}; allowed: {', '.join(_STAGES)}")
    if stage == "plan" and not isinstance(raw.get("name"), str):
        raise SpecError("request key 'name' must be the library's name when 'stage' is 'plan'")
    sources = [key for key in SOURCES if raw.get(key) is not None]
    if ("kernels" in raw) + len(sources) != 1:
        raise SpecError(f"a request has exactly one of kernels, {', '.join(SOURCES)}")
    if raw.get("limits") is not None and not sources:
        raise SpecError("request key 'limits' goes with set, config, specs or problems; listed kernels have their own")
    if sources and not raw.get("archs"):
        raise SpecError(f"request key 'archs' must list at least one arch beside {sources[0]!r}")
    return Request(
        stage=stage,
        name=typed(raw, "name", str, None),
        kernels=tuple(typed(raw, "kernels", list, [])),
        archs=_texts(raw, "archs"),
        source=(sources[0], raw[sources[0]]) if sources else None,
        filter=typed(raw, "filter", str, None),
        limits=typed(raw, "limits", dict, None),
        toolchains=typed(raw, "toolchains", dict, {}),
        arch_files=_texts(raw, "arch_files"),
        models=_texts(raw, "models"),
    )


def _texts(raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = typed(raw, key, list, [])
    for value in values:
        if not isinstance(value, str):
            raise SpecError(f"request key {key!r} must be a list of texts; {value!r} is none")
    return tuple(values)
