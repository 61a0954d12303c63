"""The plan of a compiled selection model: its C source, and the shared library made from it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any, cast

from kernelwright.codegen.actions import Action, RenderedFile, checked_path
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS, toolchain
from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.planning.describe import action_json
from kernelwright.codegen.planning.native import native_actions
from kernelwright.codegen.toolchains.host import HostToolchain
from kernelwright.codegen.violations import SpecError, typed

_KEYS = {"stage", "model", "output", "toolchains"}


def respond_heuristic(raw: dict[str, Any]) -> dict[str, Any]:
    """Respond to a request of stage ``heuristic`` (see :mod:`kernelwright.codegen.interface.protocol`)."""
    if set(raw) - _KEYS or not {"model", "output"} <= set(raw):
        raise SpecError("a heuristic request has the keys stage, model and output; toolchains are optional")
    for key in ("model", "output"):
        if not isinstance(raw[key], str):
            raise SpecError(f"request key {key!r} must be a path, not {raw[key]!r}")
    chosen = typed(raw, "toolchains", dict, {})
    host = toolchain("host", chosen.get("host", DEFAULT_TOOLCHAINS["host"]))
    file, actions = heuristic_plan(raw["model"], raw["output"], cast(HostToolchain, host))
    return {
        "files": [{"path": file.path, "text": file.text}],
        "actions": [action_json(action) for action in actions],
    }


def heuristic_plan(model: str, output: str, host: HostToolchain) -> tuple[RenderedFile, tuple[Action, ...]]:
    """Return the source of a model's file, and the actions that make the shared library ``output`` from it.

    SpecError for a model that is truncated, altered or of other features, and for a wrong path.
    """
    name = PurePosixPath(checked_path(output, "heuristic")).name.removeprefix("lib").partition(".")[0]
    source = RenderedFile(f"{output}.c", emit(read_model(model), name))
    return source, native_actions(output, [source.path], ["m"], host)
