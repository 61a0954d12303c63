"""From data (JSON, BUILD fields, one point of a configuration) to kernels, with the defaults filled in."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from pydantic import ValidationError

from kernelwright.arch import Arch
from kernelwright.codegen.spec import (
    Activation,
    DOp,
    DType,
    Epilogue,
    GemmSpec,
    Kernel,
    Layout,
    Pipeline,
    Scheduler,
    StreamK,
    default_acc_dtype,
    default_output_dtype,
)
from kernelwright.codegen.validate import validate
from kernelwright.codegen.violations import IllegalKernelError, SpecError

EXTENTS = ("tile", "wave", "warp_tile", "cluster")
_ENUMS: Mapping[str, Mapping[str, StrEnum]] = {
    key: {str(member): member for member in kind}
    for kind, keys in (
        (DType, ("dtype", "dtype_a", "dtype_b", "dtype_c", "dtype_acc")),
        (Layout, ("layout",)),
        (Pipeline, ("pipeline",)),
        (Epilogue, ("epilogue",)),
        (Scheduler, ("scheduler",)),
        (StreamK, ("stream_k",)),
        (DOp, ("d_op",)),
        (Activation, ("activation",)),
    )
    for key in keys
}
_REQUIRED = tuple(name for name, info in GemmSpec.model_fields.items() if info.is_required())
_PLAIN = (
    *("op", "persistent", "preshuffle", "num_wave_groups", "k_block_per_cu"),
    *("split_k", "num_d", "batched", "grouped"),
)
_FLAT = {f"{extent}_{axis}": (extent, axis) for extent in (*EXTENTS, "pad") for axis in "mnk"}
FIELDS = (*_ENUMS, *EXTENTS, "pad", *_PLAIN, *_FLAT)
"""Every key that a spec may have; ``tile_m`` and its like are the flat spelling of ``tile``."""


def parse_kernel(raw: object, arch: Arch) -> Kernel:
    """A legal kernel from a spec that may leave defaults out.

    ``dtype`` stands for ``dtype_a`` and ``dtype_b``; ``dtype_acc`` and ``dtype_c`` follow from ``dtype_a``; extents are
    ``{"m", "n", "k"}``, ``[m, n, k]`` or flat (``tile_m``). Padding is on. Where the architecture has one pipeline
    for B as it is, one for a shuffled B or one wave set, or a pipeline one epilogue and scheduler, it need not be
    named: the first that it lists is taken.

    Raises SpecError for unknown keys and wrong values, IllegalKernelError with every reason for an illegal kernel.
    """
    kernel = Kernel(arch=arch.name, spec=parse_spec(raw, arch))
    violations = validate(kernel, arch)
    if violations:
        raise IllegalKernelError(arch.name, kernel.name, violations)
    return kernel


def parse_kernels(raws: Iterable[object], arch: Arch) -> list[Kernel]:
    """:func:`parse_kernel` for a list; errors say which entry is wrong. The same kernel twice is an error."""
    found: dict[Kernel, int] = {}
    for index, raw in enumerate(raws):
        try:
            kernel = parse_kernel(raw, arch)
        except IllegalKernelError:
            raise
        except SpecError as error:
            raise SpecError(f"spec {index}: {error}") from None
        if kernel in found:
            raise SpecError(f"spec {index} is the same kernel as spec {found[kernel]}: {kernel.name} for {arch.name}")
        found[kernel] = index
    if not found:
        raise SpecError("the list of specs is empty")
    return list(found)


def parse_spec(raw: object, arch: Arch) -> GemmSpec:
    """A complete spec, not yet checked against the limits of ``arch``; see :func:`parse_kernel`."""
    if not isinstance(raw, Mapping):
        raise SpecError(f"a spec is an object with fields such as dtype and tile, not {raw!r}")
    return build_spec(complete(raw, arch))


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The fields of :class:`GemmSpec` that ``raw`` stands for; SpecError for unknown keys and enum values."""
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        if key in _ENUMS:
            fields[key] = _enum_value(key, value)
        elif key in EXTENTS or key == "pad":
            fields[key] = _extent(key, value)
        elif key in _PLAIN:
            fields[key] = value
        elif key not in _FLAT:
            raise SpecError(f"unknown field {key!r}{closest(key, FIELDS)}; allowed: {', '.join(FIELDS)}")
    for key, value in raw.items():
        if key in _FLAT:
            outer, axis = _FLAT[key]
            inner = fields.setdefault(outer, {})
            if axis in inner and outer in raw:
                raise SpecError(f"both {outer!r} and {key!r} are given; keep one of them")
            inner[axis] = value
    _fill(fields, arch)
    return fields


def build_spec(fields: Mapping[str, Any]) -> GemmSpec:
    """The spec with exactly these fields; SpecError in one line per wrong field instead of pydantic's report."""
    try:
        return GemmSpec.model_validate(fields)
    except ValidationError as error:
        raise SpecError("; ".join(_line(item) for item in error.errors())) from None


def closest(text: str, allowed: Iterable[str]) -> str:
    """`` (did you mean …?)`` for the entry of ``allowed`` that ``text`` was probably meant to be, or nothing."""
    close = difflib.get_close_matches(text, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def _fill(fields: dict[str, Any], arch: Arch) -> None:
    if "dtype" in fields:
        if {"dtype_a", "dtype_b"} & set(fields):
            raise SpecError("'dtype' stands for both 'dtype_a' and 'dtype_b': give it or them")
        fields["dtype_a"] = fields["dtype_b"] = fields.pop("dtype")
    if "dtype_a" in fields:
        fields.setdefault("dtype_b", fields["dtype_a"])
        fields.setdefault("dtype_acc", default_acc_dtype(fields["dtype_a"]))
        fields.setdefault("dtype_c", default_output_dtype(fields["dtype_a"]))
    shuffled = bool(fields.get("preshuffle", False))
    pipelines = [name for name, limits in arch.pipelines.items() if limits.preshuffle == shuffled]
    pipelines = pipelines or list(arch.pipelines)
    if len(pipelines) == 1:
        fields.setdefault("pipeline", pipelines[0])
    limits = arch.pipelines.get(fields.get("pipeline", ""))
    if limits:
        fields.setdefault("epilogue", limits.epilogues[0])
        fields.setdefault("scheduler", limits.schedulers[0])
        fields.setdefault("preshuffle", limits.preshuffle)
        fields.setdefault("persistent", limits.persistent[0])
    if len(arch.waves) == 1:
        fields.setdefault("wave", dict(zip("mnk", arch.waves[0], strict=True)))
    missing = [name for name in _REQUIRED if name not in fields]
    if missing:
        raise SpecError(f"missing field {', '.join(map(repr, missing))} (arch {arch.name} has no default for it)")


def _enum_value(key: str, value: object) -> StrEnum:
    members = _ENUMS[key]
    if isinstance(value, str) and value in members:
        return members[value]
    raise SpecError(f"{key} = {value!r} is unknown{closest(str(value), members)}; allowed: {', '.join(members)}")


def _extent(key: str, value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple) and len(value) == 3:
        return dict(zip("mnk", value, strict=True))
    raise SpecError(f'{key} = {value!r} is neither [m, n, k] nor {{"m", "n", "k"}}')


def _line(item: Any) -> str:
    field = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    if item["type"] == "missing":
        return f"missing field {field!r}"
    return f"{field} = {item['input']!r}: {item['msg'].removeprefix('Input ')}"
