"""From a trait configuration to kernels: JSON narrows the operation's tables, or spans a product of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.expand import EmptyExpansionError, check_keys, expand_config, read_sections
from kernelwright.codegen.selecting.filters import view
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError, closest
from kernelwright.tile_engine.enumerating.variants import RENAMED, Axes, Variant, pool, variant


def enumerate_kernels(config: object, arch: Arch) -> tuple[Kernel, ...]:
    """The legal kernels that a configuration describes on ``arch``, each once, sorted by name.

    A configuration is an object with ``variant`` (or ``op``) and sections. With ``trait_config`` alone, each field of
    which is ``{"values": […]}``, the list alone or ``{"min", "max", "step", "exclude"}``, the kernels are those of the
    operation's tables whose attributes have one of the values. With ``tile_config`` they are the product of all
    fields, less what the rules refuse (see :func:`kernelwright.codegen.selecting.expand.expand_config`).

    SpecError for a malformed configuration, an unknown field, and a field of which no kernel has any value;
    EmptyExpansionError where no kernel is left.
    """
    if not isinstance(config, Mapping):
        raise SpecError(f"a trait configuration is an object with variant and trait_config, not {config!r}")
    word = config.get("variant", config.get("op"))
    if word is None:
        raise SpecError('a trait configuration states its variant; add "variant": "forward", "gemm_universal", …')
    meant = variant(word)
    rest = {key: value for key, value in config.items() if key != "variant"}
    if rest.get("op", meant.operation) != meant.operation:
        raise SpecError(f"variant {word!r} is one of {meant.operation}, but op is {rest['op']!r}; leave op out")
    found = _product(rest, meant, arch) if "tile_config" in config else _of_tables(rest, meant, arch)
    if not found:
        raise EmptyExpansionError(f"the configuration leaves no kernel of {word} on {arch.name}")
    unique = {kernel.identity: kernel for kernel in found}
    return tuple(sorted(unique.values(), key=lambda kernel: kernel.name))


def _product(rest: Mapping[str, Any], meant: Variant, arch: Arch) -> list[Kernel]:
    own = RENAMED[meant.operation]
    config: dict[str, Any] = {"op": meant.operation}
    for key, section in rest.items():
        renamed = isinstance(section, Mapping) and key in ("problem", "trait_config")
        config[key] = {own.get(name, name): value for name, value in section.items()} if renamed else section
    if meant.operation == "gemm" and "variant" in meant.axes and "variants" not in config:
        config["variants"] = list(meant.axes["variant"])
    return [kernel for kernel in expand_config(config, arch).kernels if keeps(kernel, meant.axes)]


def _of_tables(rest: Mapping[str, Any], meant: Variant, arch: Arch) -> list[Kernel]:
    one = operation(meant.operation)
    check_keys({"op": meant.operation, **rest})
    problem, axes = read_sections(rest, one.attributes, renamed=RENAMED[meant.operation])
    constants = {name: [value] for name, value in problem.items() if name != "op"}
    stated = {**constants, **axes}
    listed = _listed(pool(meant.operation, stated, arch), meant.operation, arch)
    seen = [(kernel, attributes) for kernel in listed if _has(attributes := view(kernel), meant.axes)]
    for name, values in stated.items():
        _check(name, values, {attributes[name] for _, attributes in seen})
    return [kernel for kernel, attributes in seen if _has(attributes, stated)]


def _listed(sets: Iterable[str], operation_name: str, arch: Arch) -> list[Kernel]:
    kernels: dict[str, Kernel] = {}
    refused = []
    for name in sets:
        try:
            kernels.update((kernel.identity, kernel) for kernel in expand_set(name, arch).kernels)
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not kernels:
        raise EmptyExpansionError(f"no table of {operation_name} has kernels for {arch.name}:\n" + "\n".join(refused))
    return list(kernels.values())


def keeps(kernel: Kernel, axes: Axes) -> bool:
    """Whether a kernel's attributes have one of the values of each axis."""
    return _has(view(kernel) if axes else {}, axes)


def _has(attributes: Mapping[str, Any], axes: Axes) -> bool:
    return all(any(_same(attributes[name], value) for value in values) for name, values in axes.items())


def _same(held: object, wanted: object) -> bool:
    return held == wanted and isinstance(held, bool) == isinstance(wanted, bool)


def _check(name: str, values: Sequence[Any], held: Set[Any]) -> None:
    """SpecError if no kernel has any of the values: a word that nothing knows would silently leave nothing."""
    if not any(_same(one, value) for one in held for value in values):
        known = sorted(map(str, held))
        hint = closest(str(values[0]), known)
        raise SpecError(f"no kernel has {name} in {list(values)!r}{hint}; kernels have {', '.join(known[:20])}")
