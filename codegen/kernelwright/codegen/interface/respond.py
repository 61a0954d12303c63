"""Responses to the requests of ``kernelwright plan``: kernels, or the files and commands of libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.codegen.interface.protocol import Request, parse_request
from kernelwright.codegen.lean.made import respond_tree
from kernelwright.codegen.packaging.headers import respond_headers
from kernelwright.codegen.planning.describe import kernel_json, library_json
from kernelwright.codegen.planning.heuristic import respond_heuristic
from kernelwright.codegen.planning.native import respond_native
from kernelwright.codegen.resources.report import ReportError, respond_report
from kernelwright.codegen.selecting.selection import Selection, find_arch, load_archs, select, select_listed
from kernelwright.codegen.selecting.sets import missing_kernels
from kernelwright.codegen.violations import SpecError
from kernelwright.files.arch_files import KINDS


def respond(raw: object) -> dict[str, Any]:
    """Return the response to a request, both as :mod:`kernelwright.codegen.interface.protocol` describes them.

    Raises SpecError or ArchError for bad input.
    """
    if isinstance(raw, dict) and raw.get("stage") == "native":
        return respond_native(raw)
    if isinstance(raw, dict) and raw.get("stage") == "heuristic":
        return respond_heuristic(raw)
    if isinstance(raw, dict) and raw.get("stage") == "headers":
        return respond_headers(raw)
    if isinstance(raw, dict) and raw.get("stage") == "tree":
        return respond_tree(raw)
    if isinstance(raw, dict) and raw.get("stage") == "report":
        return _report(raw)
    if isinstance(raw, dict) and raw.get("stage") == "check_set":
        return _check_set(raw)
    if isinstance(raw, dict) and raw.get("stage") == "archs":
        return respond_archs(raw)
    if isinstance(raw, dict) and raw.get("stage") == "compile_commands":
        from kernelwright.codegen.interface.compile_commands import compile_commands  # needs backends and templates

        return compile_commands(raw)
    request = parse_request(raw)
    known = load_archs(request.arch_files)
    if request.source:
        selections = select(*request.source, request.archs, known, request.filter, request.limits)
    else:
        selections = select_listed(request.kernels, known, request.filter)
    return expansion_json(selections) if request.stage == "expand" else _plans_json(request, selections)


def _check_set(raw: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(raw) - {"stage", "set", "archs"})
    if unknown or not isinstance(raw.get("archs"), list):
        raise SpecError(f"a request of stage 'check_set' has the keys set and archs, not {', '.join(sorted(raw))}")
    known = load_archs()
    problems = [text for name in raw["archs"] for text in missing_kernels(raw.get("set"), find_arch(name, known))]
    return {"problems": problems}


def respond_archs(raw: dict[str, Any]) -> dict[str, Any]:
    """Return every architecture with its kind, backend, target, device and operations."""
    if set(raw) != {"stage"}:
        raise SpecError(f"a request of stage 'archs' has no other keys, not {', '.join(sorted(raw))}")
    return {
        "archs": [
            {
                "name": arch.name,
                "kind": KINDS[arch.backend],
                "backend": arch.backend,
                "target": arch.target,
                "device": arch.device,
                "operations": sorted(arch.operations),
                "simulated": arch.amdgpu is not None,
            }
            for arch in load_archs().values()
        ]
    }


def _report(raw: dict[str, Any]) -> dict[str, Any]:
    try:
        return respond_report(raw)
    except ReportError as error:
        raise SpecError(str(error)) from None


def expansion_json(selections: Sequence[Selection]) -> dict[str, Any]:
    """Return kernels with all their fields, and what the rules dropped."""
    return {
        "kernels": [kernel_json(kernel, item.arch, item.limits) for item in selections for kernel in item.kernels],
        "dropped": [
            {"arch": item.arch.name, "rule": rule, "count": count}
            for item in selections
            for rule, count in item.dropped.items()
        ],
    }


def _plans_json(request: Request, selections: Sequence[Selection]) -> dict[str, Any]:
    from kernelwright.codegen.backends.registry import backend_for  # not needed to list kernels
    from kernelwright.codegen.planning.compile_plan import compile_plan
    from kernelwright.codegen.planning.models import models_of, read_models

    libraries = []
    models = read_models(request.models)
    for item in selections:
        backend = backend_for(item.arch, request.toolchains)
        plan = compile_plan(request.name or "", item.arch, item.kernels, backend, models)
        described = [one.described for one in models_of(item.arch, models)]
        libraries.append(library_json(request.name or "", item, plan, request.toolchains, described))
    return {"libraries": libraries}
