"""Kernels asked for as users of the CK Tile dispatcher ask: data types, layouts, targets, variants, a set or a file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.expand import EmptyExpansionError, Expansion, expand_config, read_json
from kernelwright.codegen.kernel_sets import kernel_set_parts
from kernelwright.codegen.library import kernel_plan
from kernelwright.codegen.protocol import kernel_json
from kernelwright.codegen.render import header_path
from kernelwright.codegen.rulesets import expand_set
from kernelwright.codegen.select import Selection, find_arch, limited
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.variants import checked_variants, with_problem
from kernelwright.codegen.violations import SpecError

REGISTRY = "registry.json"
DATATYPE, LAYOUT = "fp16", "rcr"
"""What is meant where neither the options nor a configuration say."""

# The purposes of preselected sets that make up a variant.
_PURPOSES: Mapping[str, Sequence[str]] = {"standard": ("compute", "memory", "latency", "split_k")}


@dataclass(frozen=True)
class Wanted:
    """The options of ``kernelwright generate``; empty where they were not given. At most one of the last two is."""

    datatypes: tuple[str, ...]
    layouts: tuple[str, ...]
    targets: tuple[str, ...]
    variants: tuple[str, ...]
    preselected: str | None = None
    config: str | None = None


def wanted_kernels(wanted: Wanted, known: Mapping[str, Arch]) -> list[Selection]:
    """The kernels of each target, sorted by name; each combination of the options has at least one.

    Without ``preselected`` and ``config`` these are the preselected sets of data type, layout and variant. Raises
    SpecError and its kinds for an unknown set or variant, a file that cannot be read, options that contradict the set
    or the file, and for a combination without kernels, with the reasons.
    """
    variants = checked_variants(wanted.variants) if wanted.variants else []
    config = None if wanted.config is None else read_json(wanted.config)
    limits = [config["limits"]] if isinstance(config, Mapping) and "limits" in config else []
    selections = []
    archs = {arch.name: arch for arch in (find_arch(name, known) for name in wanted.targets)}
    for _, arch in sorted(archs.items()):
        kernels: dict[str, Kernel] = {}
        dropped: dict[str, int] = {}
        for part in _parts(wanted, config, variants, arch):
            kernels.update((kernel.identity, kernel) for kernel in part.kernels)
            for rule, count in part.dropped.items():
                dropped[rule] = dropped.get(rule, 0) + count
        ordered = sorted(kernels.values(), key=lambda kernel: kernel.name)
        selections.append(limited(Selection(arch, tuple(ordered), dict(sorted(dropped.items()))), limits))
    return selections


def generated_files(selections: Sequence[Selection], backends: Mapping[str, Any]) -> dict[str, str]:
    """Text by path: headers and sources of all kernels, ``<arch>/<name>.hpp``, and their list, ``registry.json``.

    ``backends`` are those of the selections' architectures, by name of architecture. The registry is
    ``{"schema_version": 1, "kernels": [{arch, name, identity, features, spec, variant, header}, …]}``.
    """
    files: dict[str, str] = {}
    listed = []
    for item in selections:
        for kernel in item.kernels:
            plan = kernel_plan(kernel, item.arch, backends[item.arch.name])
            files.update((file.path, file.text) for file in plan.files)
            fields = {"variant": kernel.spec.variant, "header": header_path(kernel)}
            listed.append({**kernel_json(kernel, item.arch, item.limits), **fields})
    files[REGISTRY] = json.dumps({"schema_version": 1, "kernels": listed}, indent=1) + "\n"
    return files


def _parts(wanted: Wanted, config: object, variants: Sequence[str], arch: Arch) -> Iterator[Expansion]:
    if wanted.preselected is not None:
        yield _of_set(wanted, variants, arch)
    elif wanted.config is not None:
        for fields in _combinations(wanted, config):
            yield expand_config(_completed(config, fields, variants), arch)
    else:
        for fields in _combinations(wanted, {}):
            for variant in variants or ["standard"]:
                yield _of_variant(fields["dtype"], fields["layout"], variant, arch)


def _of_set(wanted: Wanted, variants: Sequence[str], arch: Arch) -> Expansion:
    name = wanted.preselected or ""
    expansion = expand_set(name, arch)
    parts = kernel_set_parts(name)
    for option, given, own in zip(
        ("--datatype", "--layout"), (wanted.datatypes, wanted.layouts), parts or (None, None), strict=True
    ):
        if given and given != (own,):
            says = own or "what it holds"
            raise SpecError(f"--preselected {name} says {says}, but {option} {' '.join(given)} was given; leave it out")
    if not variants:
        return expansion
    kept = tuple(kernel for kernel in expansion.kernels if kernel.spec.variant in variants)
    for variant in variants:
        if not any(kernel.spec.variant == variant for kernel in kept):
            held = ", ".join(sorted({kernel.spec.variant for kernel in expansion.kernels}))
            raise EmptyExpansionError(f"--preselected {name} has no {variant} kernels for {arch.name}; it has {held}")
    return Expansion(kept, expansion.dropped)


def _of_variant(dtype: str, layout: str, variant: str, arch: Arch) -> Expansion:
    kernels: list[Kernel] = []
    dropped: dict[str, int] = {}
    refused = []
    for purpose in _PURPOSES.get(variant, (variant,)):
        try:
            expansion = expand_set(f"{dtype}_{layout}_{purpose}", arch)
        except EmptyExpansionError as error:
            refused.append(str(error))
            continue
        kernels += expansion.kernels
        for rule, count in expansion.dropped.items():
            dropped[rule] = dropped.get(rule, 0) + count
    if not kernels:
        raise EmptyExpansionError("\n".join(refused))
    return Expansion(tuple(kernels), dropped)


def _combinations(wanted: Wanted, config: object) -> Iterator[dict[str, str]]:
    """Data type and layout of each part; without those that the configuration states."""
    stated = set()
    if isinstance(config, Mapping):
        stated = {key for section in config.values() if isinstance(section, Mapping) for key in section}
    for option, given, keys in (
        ("--datatype", wanted.datatypes, {"dtype", "dtype_a", "dtype_b"}),
        ("--layout", wanted.layouts, {"layout"}),
    ):
        if given and stated & keys:
            raise SpecError(f"the configuration states {', '.join(sorted(stated & keys))}; leave {option} out")
    dtypes = [{}] if stated & {"dtype", "dtype_a"} else [{"dtype": name} for name in wanted.datatypes or (DATATYPE,)]
    layouts = [{}] if "layout" in stated else [{"layout": name} for name in wanted.layouts or (LAYOUT,)]
    for dtype in dtypes:
        for layout in layouts:
            yield {**dtype, **layout}


def _completed(config: object, fields: Mapping[str, str], variants: Sequence[str]) -> object:
    if not isinstance(config, Mapping):
        return config  # which expand_config refuses with a better sentence
    completed = with_problem(config, fields)
    if variants:
        if "variants" in config:
            raise SpecError("the configuration states variants; leave --variants out")
        completed["variants"] = list(variants)
    return completed
