"""Kernels, actions and libraries as JSON, for responses, exports and manifests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, CompilePlan
from kernelwright.codegen.backends.registry import ToolchainChoice, toolchains_for
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.planning.groups import GROUP
from kernelwright.codegen.planning.render import header_path
from kernelwright.codegen.resources.limits import Limits
from kernelwright.codegen.selecting.selection import Selection

ABI_VERSION = 3
"""KW_ABI_VERSION of kernelwright/abi.h."""


def kernel_json(kernel: Kernel, arch: Arch, limits: Mapping[str, Limits]) -> dict[str, Any]:
    """Return a kernel as responses and exports show it, with its limits (by identity) if it has any."""
    stated = limits.get(kernel.identity)
    return {
        "arch": kernel.arch,
        "name": kernel.name,
        "identity": kernel.identity,
        "features": " ".join(operation(kernel.spec.op).features(kernel.spec, arch)),
        "spec": kernel.spec.model_dump(mode="json"),
        **({"limits": dict(stated)} if stated else {}),
    }


def library_json(
    name: str,
    item: Selection,
    plan: CompilePlan,
    toolchains: Mapping[str, ToolchainChoice],
    models: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """One entry of ``libraries``: ``plan`` builds the kernels of the selection, and ``models`` are part of it."""
    arch = item.arch
    listed = [
        {
            **kernel_json(kernel, arch, item.limits),
            "header": header_path(kernel),
            "objects": list(made.objects),
            "report": made.report if _is_read(kernel, item) else None,
            "counts": made.counts,
            "expects": asdict(operation(kernel.spec.op).expects(kernel, arch)),
        }
        for kernel, made in zip(item.kernels, plan.kernels, strict=True)
    ]
    return {
        "name": name,
        "arch": arch.name,
        "backend": arch.backend,
        "abi_version": ABI_VERSION,
        "device": arch.device,
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
        **({"models": list(models)} if models else {}),
    }


def _is_read(kernel: Kernel, item: Selection) -> bool:
    """Whether the manifest states a kernel's resources.

    Those of a CPU kernel are found by decoding its code, 50 ms each: in a large library, only for kernels with limits.
    """
    large = len(item.kernels) > 2 * GROUP
    return not (large and item.arch.backend == "cpu") or kernel.identity in item.limits


def action_json(action: Action) -> dict[str, Any]:
    """Return an action as responses show it."""
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
