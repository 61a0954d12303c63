"""Preselected sets such as ``fp16_rcr_compute``: kernels for a purpose, in their first legal form per architecture."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion
from kernelwright.codegen.operations.gemm.legalise import first_legal, members_of
from kernelwright.codegen.selecting.expand import EmptyExpansionError, Refused

PURPOSES: Mapping[str, str] = MappingProxyType(
    {
        "compute": "large problems: big tiles that keep the matrix units busy",
        "memory": "problems with few rows or columns, bound by memory: small tiles",
        "latency": "the smallest problems: one or two small tiles, shortest way through",
        "multi_d": "further operands D and an activation in the epilogue",
        "preshuffle": "weights B shuffled beforehand",
        "split_k": "workgroups that share K",
        "batched": "many products of one shape in a launch",
        "grouped": "many products of different shapes in a launch",
        "stream_k": "the steps of all tiles spread evenly over the device",
        "essential": "a handful of compute, memory and multi_d: small to build",
        "all": "all of the above",
    }
)
DTYPES = tuple(dtype for dtype in DType if dtype is not DType.INT32)
GRAMMAR = (
    f"<dtype>_<layout>_<purpose> with dtype {', '.join(DTYPES)}; layout {', '.join(Layout)}; "
    f"purpose {', '.join(PURPOSES)}"
)
"""The grammar of preselected set names."""


def kernel_set_names() -> tuple[str, ...]:
    """``<dtype>_<layout>_<purpose>`` for every dtype, layout and purpose, whether or not an architecture has it."""
    return tuple(f"{dtype}_{layout}_{purpose}" for dtype in DTYPES for layout in Layout for purpose in PURPOSES)


def kernel_set_parts(name: str) -> tuple[str, str] | None:
    """Return dtype and layout of a kernel set; None if the name is not one."""
    parts = _known().get(name)
    return None if parts is None else (str(parts[0]), str(parts[1]))


def expand_kernel_set(name: str, arch: Arch) -> Expansion:
    """Return the kernels of a set of :func:`kernel_set_names` on ``arch``, each legal and listed once, in set order.

    ``dropped`` counts wanted kernels without a legal form, by the rules that refuse their last form. Raises
    EmptyExpansionError with those reasons if none is left.
    """
    dtype, layout, purpose = _known()[name]
    if "gemm" not in arch.operations:
        raise EmptyExpansionError(f"arch {arch.name} has no section operations.gemm, so no kernel of {name!r}")
    kernels: dict[str, Kernel] = {}
    refused = Refused()
    for wanted in _parts(purpose):
        for forms in members_of(_wanted(arch.backend).get(wanted, [])):
            kernel, violations = first_legal(forms, dtype, layout, arch)
            refused.add(violations)
            if kernel is not None:
                kernels.setdefault(kernel.identity, kernel)
    if not kernels:
        why = str(refused) or f"\n  there are no such kernels for {arch.backend}"
        raise EmptyExpansionError(f"kernel set {name!r} has no kernels for {arch.name}:{why}")
    return Expansion(tuple(kernels.values()), dict(sorted(refused.counts.items())))


def siblings(name: str, arch: Arch, purposes: Iterable[str] = PURPOSES) -> tuple[str, ...]:
    """Return the sets of a set's dtype and layout that have kernels for ``arch``; none for a name of another grammar.

    ``all`` is left out: it has what the others have.
    """
    dtype, layout, _ = _known().get(name, ("", "", ""))
    others = (f"{dtype}_{layout}_{purpose}" for purpose in purposes if dtype and purpose != "all")
    return tuple(other for other in others if other != name and _has_kernels(other, arch))


def _has_kernels(name: str, arch: Arch) -> bool:
    try:
        expand_kernel_set(name, arch)
    except EmptyExpansionError:
        return False
    return True


def _parts(purpose: str) -> list[str]:
    """Return the purposes: ``all`` is every other one, which include the essential kernels already."""
    return [item for item in PURPOSES if item not in ("essential", "all")] if purpose == "all" else [purpose]


@functools.cache
def _known() -> Mapping[str, tuple[DType, Layout, str]]:
    return {
        f"{dtype}_{layout}_{purpose}": (dtype, layout, purpose)
        for dtype in DTYPES
        for layout in Layout
        for purpose in PURPOSES
    }


@functools.cache
def _wanted(backend: str) -> dict[str, list[Any]]:
    folder = importlib.resources.files("kernelwright.codegen.operations.gemm").joinpath("data", "kernel_sets")
    file = folder.joinpath(f"{backend}.json")
    if not file.is_file():
        return {}
    wanted: dict[str, list[Any]] = json.loads(file.read_text("utf-8"))
    return wanted
