"""Configurations of the CK Tile engine in the words of our specs: sections, names of traits, and their values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.codegen.violations import SpecError

_DTYPE = {"data_type": "dtype", "datatype": "dtype"}
# What CK Tile's configurations call attributes.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "gemm": {
        **{**_DTYPE, **{f"datatype_{one}": f"dtype_{one}" for one in "abc"}},
        **{f"warp_{axis}": f"wave_{axis}" for axis in "mnk"},
    },
    "convolution": {
        **{**_DTYPE, "wave_mode": "scheduler", "ndim_spatial": "spatial_dims"},
        **{"epi": "epilogue", "merged_groups": "num_groups_to_merge"},
    },
    "attention": {**_DTYPE, "mode": "group", "logits": "logits_soft_cap"},
}
# What they call values, by the attribute's own name.
VALUES: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "gemm": {},
    "convolution": {"pipeline": {"basic_v1": "compv1", "basic_v2": "compv2"}},
    "attention": {
        **{name: {"no": "none"} for name in ("mask", "bias", "qscale")},
        "group": {"batch": False, "group": True},
    },
}
# Kernels of a table that serve a value beside those that have it: generic masks are causal where windows say so.
SERVED_BY: Mapping[str, Mapping[str, Mapping[str, object]]] = {
    "attention": {"mask": {"top_left": "generic", "bottom_right": "generic"}}
}
_SECTIONS = ("problem", "tile_config", "trait_config")
_LAYOUTS = ("layout_a", "layout_b", "layout_c")


def in_our_words(config: Mapping[str, Any], operation: str) -> dict[str, Any]:
    """The configuration with our names and values; what is malformed is left for its reader to refuse.

    Of GEMM, ``k_block_per_cu`` may stand beside the sections, and ``problem`` may give each matrix a layout of its own.
    SpecError for ``permute_n``, which no kernel has.
    """
    found = {
        key: _section(section, operation) if key in _SECTIONS and isinstance(section, Mapping) else section
        for key, section in config.items()
    }
    return _gemm(found) if operation == "gemm" else found


def _gemm(config: dict[str, Any]) -> dict[str, Any]:
    if config.pop("permute_n", False):
        raise SpecError("permute_n = true: no kernel permutes N; leave it out")
    if "k_block_per_cu" in config:
        traits = config.setdefault("trait_config", {})
        config["trait_config"] = {"k_block_per_cu": [config.pop("k_block_per_cu")], **traits}
    problem = config.get("problem")
    if isinstance(problem, Mapping):
        plain = {name: _only(value) for name, value in problem.items()}
        if set(_LAYOUTS) <= set(plain):
            plain["layout"] = "".join(str(plain.pop(name)) for name in _LAYOUTS)
        config["problem"] = plain
    return config


def _only(value: object) -> object:
    """The one value of ``{"values": [one]}``, which is how CK Tile writes constants."""
    values = value.get("values") if isinstance(value, Mapping) else None
    return values[0] if isinstance(values, list) and len(values) == 1 else value


def _section(section: Mapping[str, Any], operation: str) -> dict[str, Any]:
    names, values = RENAMED[operation], VALUES[operation]
    own = ((names.get(name, name), given) for name, given in section.items())
    return {name: _mapped(given, values.get(name, {})) for name, given in own}


def _mapped(given: object, words: Mapping[str, object]) -> object:
    """A value, a list of values, or ``{"values": […]}``, each value in our word; a range has none."""

    def one(value: object) -> object:
        return words.get(value, value) if isinstance(value, str) else value

    if isinstance(given, Mapping):
        values = given.get("values")
        return {**given, "values": _each(values, one)} if isinstance(values, list) else given
    return _each(given, one) if isinstance(given, list) else one(given)


def _each(values: Sequence[object], one: Callable[[object], object]) -> list[object]:
    return [one(value) for value in values]
