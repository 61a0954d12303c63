"""From a trait configuration to kernels: JSON narrows the operation's tables, or spans its own product."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from enum import Enum
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Operation, operation
from kernelwright.codegen.selecting.expand import EmptyExpansionError, check_keys, expand_config, read_sections
from kernelwright.codegen.selecting.filters import view
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError, closest
from kernelwright.tile_engine.enumerating.ck_tile_words import in_our_words
from kernelwright.tile_engine.enumerating.variants import Variant, variant
from kernelwright.tile_engine.operation import Axes, Measurable


def enumerate_kernels(config: object, arch: Arch) -> tuple[Kernel, ...]:
    """The legal kernels that a configuration describes on ``arch``, each once, sorted by name.

    A configuration is an object with ``variant`` (or ``op``) and sections. With ``trait_config`` alone, each field of
    which is ``{"values": […]}``, a bare list or ``{"min", "max", "step", "exclude"}``, the kernels are those of the
    operation's tables whose attributes have one of the values. With ``tile_config`` they are the product of all fields,
    without the combinations that the rules refuse (see :func:`kernelwright.codegen.selecting.expand.expand_config`).

    Raises SpecError for a malformed configuration, an unknown field, and a field with no value that any kernel has;
    EmptyExpansionError if no kernel is left.
    """
    if not isinstance(config, Mapping):
        raise SpecError(f"a trait configuration is an object with variant and trait_config, not {config!r}")
    word = config.get("variant", config.get("op"))
    if word is None:
        raise SpecError(
            'a trait configuration states its variant; add "variant": "forward", "gemm_universal", …, or --variant'
        )
    meant = variant(word)
    op = meant.operation.name
    rest = in_our_words({key: value for key, value in config.items() if key != "variant"}, meant.operation.words)
    if rest.get("op", op) != op:
        raise SpecError(f"variant {word!r} is one of {op}, but op is {rest['op']!r}; leave op out")
    kernels = _product(rest, meant, arch) if "tile_config" in config else _of_tables(rest, meant, arch)
    if not kernels:
        raise EmptyExpansionError(f"the configuration leaves no kernel of {word} on {arch.name}")
    unique = {kernel.identity: kernel for kernel in kernels}
    return tuple(sorted(unique.values(), key=lambda kernel: kernel.name))


def with_options(config: object, **options: str | None) -> object:
    """Merge command-line options into a configuration: ``variant``, and ``dtype`` and ``layout`` of the problem.

    Configurations of CK Tile's engine leave these to the command line. Raises SpecError for an option that contradicts
    the configuration.
    """
    stated = {name: value for name, value in options.items() if value is not None}
    if not isinstance(config, Mapping):
        return config
    whole = dict(config)
    if variant := stated.pop("variant", None):
        whole.setdefault("variant", variant)
        if whole["variant"] != variant:
            raise SpecError(f"--variant is {variant!r}, but the configuration's is {whole['variant']!r}; leave one out")
    problem = whole.get("problem", {})
    if stated and isinstance(problem, Mapping):
        whole["problem"] = {**stated, **problem}
        for name, value in stated.items():
            if whole["problem"][name] != value:
                raise SpecError(f"--{name} is {value!r}, but problem.{name} is {problem[name]!r}; leave one out")
    return whole


def _product(rest: Mapping[str, Any], meant: Variant, arch: Arch) -> list[Kernel]:
    lists = meant.operation.words.product_lists
    listed = {key: list(meant.axes[name]) for name, key in lists.items() if name in meant.axes}
    config = {"op": meant.operation.name, **listed, **rest}
    return [kernel for kernel in expand_config(config, arch).kernels if keeps(kernel, meant.axes)]


def _of_tables(rest: Mapping[str, Any], meant: Variant, arch: Arch) -> list[Kernel]:
    one = operation(meant.operation.name)
    check_keys({"op": one.name, **rest})
    problem, axes = read_sections(rest, one.attributes)
    constants = {name: [value] for name, value in problem.items() if name != "op"}
    stated = {**constants, **axes}
    for name, values in stated.items():
        if wrong := [value for value in values if not isinstance(value, str | int | float | None)]:
            raise SpecError(f"{name} = {wrong[0]!r:.200}: the attributes of kernels are texts, numbers, true or false")
    listed = _listed(one, stated, arch)
    seen = [(kernel, attributes) for kernel in listed if _has(attributes := view(kernel), meant.axes)]
    for name, values in stated.items():
        _check_words(name, values, one)
    served = {name: _served(meant.operation, name, values) for name, values in stated.items()}
    for name, values in served.items():
        _check(name, values, {attributes[name] for _, attributes in seen})
    return [kernel for kernel, attributes in seen if _has(attributes, served)]


def _served(measured: Measurable, name: str, values: Sequence[Any]) -> list[Any]:
    """The values, plus those whose kernels serve them too."""
    wider = measured.words.served_by.get(name, {})
    return list(dict.fromkeys((*values, *(wider[value] for value in values if value in wider))))


def _listed(one: Operation, stated: Axes, arch: Arch) -> list[Kernel]:
    """Kernels of the operation's tables, including all that ``stated`` could leave."""
    kernels: dict[str, Kernel] = {}
    refused = []
    for name in one.sets.holding(stated):
        try:
            kernels.update((kernel.identity, kernel) for kernel in expand_set(f"{one.name}:{name}", arch).kernels)
        except EmptyExpansionError as error:
            refused.append(str(error))
    if not kernels:
        raise EmptyExpansionError(f"no table of {one.name} has kernels for {arch.name}:\n" + "\n".join(refused))
    return list(kernels.values())


def keeps(kernel: Kernel, axes: Axes) -> bool:
    """Whether a kernel's attribute has one of the values, for each axis."""
    return _has(view(kernel) if axes else {}, axes)


def _has(attributes: Mapping[str, Any], axes: Axes) -> bool:
    return all(any(_same(attributes[name], value) for value in values) for name, values in axes.items())


def _same(held: object, wanted: object) -> bool:
    return held == wanted and isinstance(held, bool) == isinstance(wanted, bool)


def _check_words(name: str, values: Sequence[Any], one: Operation) -> None:
    """Raise SpecError for a word that the attribute never takes: other words of the list would hide it."""
    field = one.spec_type.model_fields.get(name)
    kind = field.annotation if field else None
    if not (isinstance(kind, type) and issubclass(kind, Enum)):
        return
    known = [str(word.value) for word in kind]
    for value in values:
        if value not in known:
            raise SpecError(f"{name} = {value!r}{closest(str(value), known)}; allowed: {', '.join(known)}")


def _check(name: str, values: Sequence[Any], held: Set[Any]) -> None:
    """Raise SpecError if no kernel has any of the values: an unknown word would silently leave nothing."""
    if not any(_same(one, value) for one in held for value in values):
        known = sorted(map(str, held))
        hint = closest(str(values[0]), known)
        raise SpecError(f"no kernel has {name} in {list(values)!r}{hint}; kernels have {', '.join(known[:20])}")
