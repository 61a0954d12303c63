"""Translate configurations of the CK Tile engine to the words of our specs: sections, trait names, and values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.tile_engine.operation import Words

_SECTIONS = ("problem", "tile_config", "trait_config")


def in_our_words(config: Mapping[str, Any], words: Words) -> dict[str, Any]:
    """The configuration with our names and values; malformed parts are left for its reader to refuse.

    Raises SpecError for values that no kernel of the operation has.
    """
    translated = {
        key: _section(section, words) if key in _SECTIONS and isinstance(section, Mapping) else section
        for key, section in config.items()
    }
    return words.rewritten(translated)


def _section(section: Mapping[str, Any], words: Words) -> dict[str, Any]:
    own = ((words.renamed.get(name, name), given) for name, given in section.items())
    return {name: _mapped(given, words.values.get(name, {})) for name, given in own}


def _mapped(given: object, words: Mapping[str, object]) -> object:
    """A value, a list of values, or ``{"values": […]}``, each value in our words; ranges have no words."""

    def one(value: object) -> object:
        return words.get(value, value) if isinstance(value, str) else value

    if isinstance(given, Mapping):
        values = given.get("values")
        return {**given, "values": _each(values, one)} if isinstance(values, list) else given
    return _each(given, one) if isinstance(given, list) else one(given)


def _each(values: Sequence[object], one: Callable[[object], object]) -> list[object]:
    return [one(value) for value in values]
