"""Variants that a configuration is expanded for: their changes to it, in the form of the CK Tile dispatcher."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.spec import VARIANTS
from kernelwright.codegen.selecting.expand import check_values
from kernelwright.codegen.violations import SpecError, closest

KEYS = ("variants", "multi_d_config")
"""Keys that a configuration may have besides its sections, for :func:`configs_of`."""

# Names in CK Tile's configurations. Unary ones stand for a sum of D tensors before them.
ELEMENTWISE: Mapping[str, tuple[str, str]] = {
    "MultiDAdd": ("add", "none"),
    "MultiDMultiply": ("multiply", "none"),
    "Relu": ("add", "relu"),
    "Gelu": ("add", "gelu"),
    "FastGelu": ("add", "fast_gelu"),
    "Silu": ("add", "silu"),
    "Sigmoid": ("add", "sigmoid"),
    "Tanh": ("add", "tanh"),
}
_MULTI_D_DEFAULT = {"elementwise_ops": ["MultiDAdd", "MultiDMultiply"], "num_d_tensors": [1, 2]}


def configs_of(config: Mapping[str, Any], arch: Arch) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the configurations that ``config`` stands for, each with its variant; None if it states no variants.

    ``variants`` lists words of VARIANTS. For each, the fields that make the variant are added unless the configuration
    states them itself: ``multi_d`` takes operations and numbers of D tensors from ``multi_d_config``, ``preshuffle``
    the architecture's pipelines for it, ``stream_k`` both reductions. SpecError for anything unknown.
    """
    plain = {key: value for key, value in config.items() if key not in KEYS}
    operations = _operations(config.get("multi_d_config", _MULTI_D_DEFAULT))
    if "variants" not in config:
        return [(None, plain)]
    wanted = checked_variants(config["variants"])
    return [(variant, one) for variant in wanted for one in _of_variant(plain, variant, operations, arch)]


def checked_variants(wanted: object) -> list[str]:
    """Return ``wanted`` if it is a list of words of VARIANTS without repetitions; SpecError otherwise."""
    if not isinstance(wanted, list | tuple) or not wanted or len(set(map(str, wanted))) != len(wanted):
        raise SpecError(f"variants = {wanted!r}: write a list of different words of {', '.join(VARIANTS)}")
    for word in wanted:
        if word not in VARIANTS:
            raise SpecError(f"unknown variant {word!r}{closest(str(word), VARIANTS)}; allowed: {', '.join(VARIANTS)}")
    return list(wanted)


def _operations(section: object) -> list[dict[str, Any]]:
    if not isinstance(section, Mapping) or not set(section) <= set(_MULTI_D_DEFAULT):
        raise SpecError(f"multi_d_config = {section!r}: write an object with {', '.join(_MULTI_D_DEFAULT)}")
    names, numbers = ({**_MULTI_D_DEFAULT, **section}[key] for key in _MULTI_D_DEFAULT)
    if not isinstance(names, list) or not isinstance(numbers, list) or not names or not numbers:
        raise SpecError(f"multi_d_config = {section!r}: both are lists of at least one value")
    for key, listed in (("elementwise_ops", names), ("num_d_tensors", numbers)):
        check_values(f"multi_d_config.{key}", listed)
    operations = []
    for name in names:
        if not isinstance(name, str) or name not in ELEMENTWISE:
            known = ", ".join(ELEMENTWISE)
            raise SpecError(f"unknown elementwise_ops {name!r}{closest(str(name), ELEMENTWISE)}; allowed: {known}")
        d_op, activation = ELEMENTWISE[name]
        operations += [{"d_op": d_op, "activation": activation, "num_d": number} for number in numbers]
    return operations


def _of_variant(
    plain: dict[str, Any], variant: str, operations: list[dict[str, Any]], arch: Arch
) -> Iterable[dict[str, Any]]:
    stated = {key for section in plain.values() if isinstance(section, Mapping) for key in section}
    if variant == "multi_d" and not stated & {"num_d", "activation"}:
        return [with_problem(plain, operation) for operation in operations]
    if variant == "preshuffle" and "preshuffle" not in stated:
        pipelines = [name for name, limits in gemm_section(arch).pipelines.items() if limits.preshuffle]
        if pipelines:
            bare = _without(plain, {"pipeline", "scheduler"})
            return [with_problem(bare, {"pipeline": pipeline, "preshuffle": True}) for pipeline in pipelines]
        return [with_problem(plain, {"preshuffle": True})]
    if variant == "stream_k" and "stream_k" not in stated:
        return [with_problem(plain, {"stream_k": reduction}) for reduction in ("linear", "tree")]
    if variant in ("batched", "grouped") and variant not in stated:
        return [with_problem(plain, {variant: True})]
    return [plain]


def with_problem(config: Mapping[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with further fields in ``problem``; SpecError if that is not an object."""
    problem = config.get("problem", {})
    if not isinstance(problem, Mapping):
        raise SpecError(f"section 'problem' must be an object, not {problem!r}")
    return {**config, "problem": {**problem, **fields}}


def _without(config: Mapping[str, Any], fields: set[str]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in section.items() if key not in fields}
        if isinstance(section, Mapping)
        else section
        for name, section in config.items()
    }
