"""What ``kernelwright plan`` and ``kernelwright bundle`` read and write, for tools that run plans themselves.

Request of ``kernelwright plan --request FILE --response FILE`` (a JSON object, unknown keys are errors)::

    stage        "expand": which kernels?   "plan": which files and commands?
    name         library name, a C identifier; "plan" only
    kernels      [{"arch": "gfx942", "spec": {…}, "origin": "where it was written, for messages", "limits": {…}}, …],
                 the last two optional (see kernelwright.codegen.limits); either this,
    archs        ["gfx942", …]                               or archs and exactly one of
    set            a set, such as "essential" or "fp16_rcr_compute"
    config         a configuration: an object, or the path of a JSON file (see kernelwright.codegen.expand)
    specs          [{…}, …] each for every arch
    filter       optional expression over kernels (see kernelwright.codegen.filters)
    limits       optional limits for all kernels of a set, config or specs
    toolchains   optional, {"host": "zig", "hip": "wheel", "cuda": "clang"}; instead of a word an object may choose
                 with arguments: {"choice": "system", "path": …, "fingerprint": …}
    arch_files   optional paths of architecture files to know beside the shipped ones

A spec may leave defaults out (see kernelwright.codegen.specs); responses always hold every field.

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
        "kernels": [{"arch", "name", "identity", "features", "spec", "header", "objects", "report"}, …]}, …]}
                                                                                 "limits" where some are stated

A request of stage "native" has ``output``, ``sources`` (C and C++ files), optionally ``link`` (["dl", …]) and
``toolchains``; the response holds the ``actions`` that make the shared library ``output``.

A request of stage "headers" has no other key; the response {"files": {path: text}} holds the headers that actions see
in the trees of our own sources, where the generator was installed from its wheel.

A request of stage "report" has ``manifests``, and optionally ``costs``, by what to call the libraries; the response
{"text": …, "libraries": […]} is what ``kernelwright info`` prints (see kernelwright.codegen.report).

Every path is relative to the working directory of the build and starts with ``<arch>/``. Inputs of an action are
``files`` or outputs of other actions; ``trees`` appear at ``__<name>``, ``caches`` at ``__cache_<name>``.

Request of ``kernelwright bundle --request FILE --response FILE``::

    stage        optional, "bundle"
    library      one entry of "libraries"; files and actions may be left out
    sha256       optional, {path: 64 hex digits} of the library and of objects, which then need not be there
    root         optional, the folder below which library, objects and reports stand; "." unless given
    materials    optional, what the library was made of: [{"requirements": text of a hash-pinned requirements file},
                 {"files": {path: 64 hex digits}}, …]; the generator adds its own files

The response maps file names to texts: ``manifest.json`` and, given materials, ``provenance.json``.

Request of ``kernelwright wheel --request FILE --response FILE``, see kernelwright.codegen.wheels.

Exit codes: 0 done; 1 a command of a build failed; 2 bad input, nothing was written; 3 a package is not what its
statement says; 4 a defect of kernelwright itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.backends import ToolchainChoice, toolchains_for
from kernelwright.codegen.groups import GROUP
from kernelwright.codegen.limits import Limits
from kernelwright.codegen.plan import Action, LibraryPlan
from kernelwright.codegen.render import header_path
from kernelwright.codegen.select import Selection
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.violations import SpecError

ABI_VERSION = 3
"""KW_ABI_VERSION of kernelwright/abi.h."""

SOURCES = ("set", "config", "specs")
_KEYS = ("stage", "name", "kernels", "archs", *SOURCES, "filter", "limits", "toolchains", "arch_files")
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


def parse_request(raw: object) -> Request:
    """Check the shape of a request; SpecError names the key, what was found and what is allowed."""
    if not isinstance(raw, dict):
        raise SpecError(f"a request is a JSON object, not {type(raw).__name__}")
    for key in raw:
        if key not in _KEYS:
            raise SpecError(f"request has an unknown key {key!r}; allowed: {', '.join(_KEYS)}")
    stage = raw.get("stage")
    if stage not in _STAGES:
        raise SpecError(f"request key 'stage' is {stage!r}; allowed: {', '.join(_STAGES)}")
    if stage == "plan" and not isinstance(raw.get("name"), str):
        raise SpecError("request key 'name' must be the library's name when 'stage' is 'plan'")
    sources = [key for key in SOURCES if raw.get(key) is not None]
    if ("kernels" in raw) + len(sources) != 1:
        raise SpecError(f"a request has exactly one of kernels, {', '.join(SOURCES)}")
    if raw.get("limits") is not None and not sources:
        raise SpecError("request key 'limits' goes with set, config or specs; listed kernels have their own")
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
    )


def kernel_json(kernel: Kernel, arch: Arch, limits: Mapping[str, Limits]) -> dict[str, Any]:
    """A kernel as responses and exports show it, with its limits (by identity) if it has some."""
    stated = limits.get(kernel.identity)
    return {
        "arch": kernel.arch,
        "name": kernel.name,
        "identity": kernel.identity,
        "features": " ".join(arch.features(kernel.spec.dtype_key, kernel.spec.warp_tile.k)),
        "spec": kernel.spec.model_dump(mode="json"),
        **({"limits": dict(stated)} if stated else {}),
    }


def library_json(
    name: str, item: Selection, plan: LibraryPlan, toolchains: Mapping[str, ToolchainChoice]
) -> dict[str, Any]:
    """One entry of ``libraries``: ``plan`` is that of the selection's kernels."""
    arch = item.arch
    listed = [
        {
            **kernel_json(kernel, arch, item.limits),
            "header": header_path(kernel),
            "objects": list(p.objects),
            "report": p.report if _is_read(kernel, item) else None,
        }
        for kernel, p in zip(item.kernels, plan.kernels, strict=True)
    ]
    return {
        "name": name,
        "arch": arch.name,
        "backend": arch.backend,
        "abi_version": ABI_VERSION,
        "device": arch.description.partition(";")[0],
        "wave_size": arch.wave_size,
        "compute_unit": arch.compute_unit.model_dump(mode="json") if arch.compute_unit else None,
        "library": plan.library,
        "files": [{"path": file.path, "text": file.text} for file in plan.all_files],
        "actions": [action_json(action) for action in plan.all_actions],
        "objects": [path for kernel in plan.kernels for path in kernel.objects],
        "groups": [{"output": group.action.outputs[0], "kernels": list(group.kernels)} for group in plan.groups],
        "reports": {kernel["name"]: kernel["report"] for kernel in listed if kernel["report"]},
        "toolchains": {kind: made.identity for kind, made in toolchains_for(arch, toolchains).items()},
        "kernels": listed,
    }


def _is_read(kernel: Kernel, item: Selection) -> bool:
    """Whether the manifest shall tell a kernel's resources.

    Those of a CPU kernel are found by decoding its code, 50 ms each; in a large library, for kernels with limits only.
    """
    large = len(item.kernels) > 2 * GROUP
    return not (large and item.arch.backend == "cpu") or kernel.identity in item.limits


def action_json(action: Action) -> dict[str, Any]:
    """An action as responses show it."""
    return {
        "id": action.id,
        "description": action.description,
        "argv": list(action.argv),
        "inputs": list(action.inputs),
        "outputs": list(action.outputs),
        "trees": list(action.trees),
        "env": [list(pair) for pair in action.env],
        "caches": list(action.caches),
        "memory_mb": action.memory_mb,
    }


def typed(raw: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """``raw[key]`` if it is there and not null, else ``default``; SpecError if it is no ``kind``."""
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise SpecError(f"request key {key!r} must be a {kind.__name__}, not {value!r}")
    return value


def _texts(raw: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = typed(raw, key, list, [])
    for value in values:
        if not isinstance(value, str):
            raise SpecError(f"request key {key!r} must be a list of texts; {value!r} is none")
    return tuple(values)
