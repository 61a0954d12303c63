"""Field classes of kernel targets, made from the generator's own description of its specs.

The generator checks every value against the architecture. A value that is legal on no architecture is refused here,
where Pants reads the BUILD file.
"""

from __future__ import annotations

from typing import Any, ClassVar, Iterable, Mapping, Optional

from kernelwright.pants.generator_data import generator_data
from pants.engine.addresses import Address
from pants.engine.target import Field, IntField, InvalidFieldException, SequenceField, StringField, TriBoolField


class SpecField(Field):
    """A field of a spec. Its value is None where the BUILD file omits it."""

    def to_spec(self) -> Any:
        """Return the value as in the generator's requests."""
        return self.value


class TextSpecField(SpecField, StringField):
    """One of ``valid_choices``."""


class BoolSpecField(SpecField, TriBoolField):
    """True or False."""


class IntSpecField(SpecField, IntField):
    """An integer from ``minimum`` to ``maximum``; None for no bound."""

    minimum: ClassVar[Optional[int]]
    maximum: ClassVar[Optional[int]]

    @classmethod
    def compute_value(cls, raw_value: Optional[int], address: Address) -> Optional[int]:
        value = super().compute_value(raw_value, address)
        if value is not None:
            _check_range(cls.alias, value, cls.minimum, cls.maximum, address)
        return value


class AxesSpecField(SpecField, SequenceField[Any]):
    """One value for each of ``axes``; with ``ends_with_zeros`` those that are left out at the end are 0."""

    axes: ClassVar[tuple[str, ...]]
    ends_with_zeros: ClassVar[bool] = False

    def to_spec(self) -> Optional[dict[str, Any]]:
        if self.value is None:
            return None
        return dict(zip(self.axes, (*self.value, *[0] * (len(self.axes) - len(self.value)))))

    @classmethod
    def compute_value(cls, raw_value: Optional[Iterable[Any]], address: Address) -> Optional[tuple[Any, ...]]:
        value = super().compute_value(raw_value, address)
        least = 1 if cls.ends_with_zeros else len(cls.axes)
        if value is not None and not least <= len(value) <= len(cls.axes):
            raise InvalidFieldException(
                f"{address}: the field {cls.alias} has {len(value)} values; allowed: {cls.expected_type_description}"
            )
        return value


class BoolsSpecField(AxesSpecField):
    """True or False for each axis."""

    expected_element_type = bool

    @classmethod
    def compute_value(cls, raw_value: Optional[Iterable[bool]], address: Address) -> Optional[tuple[bool, ...]]:
        return super().compute_value(raw_value, address)


class ExtentsSpecField(AxesSpecField):
    """An integer from ``minimum`` to ``maximum`` for each axis."""

    expected_element_type = int
    minimum: ClassVar[Optional[int]]
    maximum: ClassVar[Optional[int]]

    @classmethod
    def compute_value(cls, raw_value: Optional[Iterable[int]], address: Address) -> Optional[tuple[int, ...]]:
        value = super().compute_value(raw_value, address)
        for extent in value or ():
            _check_range(cls.alias, extent, cls.minimum, cls.maximum, address)
        return value


def _check_range(alias: str, value: int, minimum: Optional[int], maximum: Optional[int], address: Address) -> None:
    below = minimum is not None and value < minimum
    above = maximum is not None and value > maximum
    if below or above or isinstance(value, bool):
        raise InvalidFieldException(
            f"{address}: the field {alias} has the value {value}; allowed: an integer{_bounds(minimum, maximum)}"
        )


def _bounds(minimum: Optional[int], maximum: Optional[int]) -> str:
    bounds = ((" from ", minimum), (" to ", maximum))
    return "".join(f"{word}{bound}" for word, bound in bounds if bound is not None)


_BASES: Mapping[str, tuple[type[SpecField], str]] = {
    "text": (TextSpecField, "a string"),
    "bool": (BoolSpecField, "True or False"),
    "int": (IntSpecField, "an integer"),
    "extents": (ExtentsSpecField, "integers"),
    "bools": (BoolsSpecField, "booleans"),
}
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def field_type(described: Mapping[str, Any]) -> type[SpecField]:
    """Return the field class for an entry of ``fields`` in ``data/generator.json``."""
    base, values = _BASES[described["kind"]]
    members: dict[str, Any] = {"alias": described["name"], "help": described["help"], "__module__": __name__}
    if "axes" in described:
        axes = tuple(described["axes"])
        members["axes"] = axes
        members["ends_with_zeros"] = described["kind"] == "extents" and described.get("minimum") == 0
        how_many = f"up to {_COUNTS[len(axes)]}" if members["ends_with_zeros"] else _COUNTS[len(axes)]
        members["expected_type_description"] = f"{how_many} {values}: one each for {', '.join(axes).upper()}"
    if described["kind"] in ("int", "extents"):
        minimum, maximum = described.get("minimum"), described.get("maximum")
        members.update(minimum=minimum, maximum=maximum)
        if described["kind"] == "int":
            members["help"] += f" Allowed: integers{_bounds(minimum, maximum)}."
    if described.get("allowed"):
        members["valid_choices"] = tuple(described["allowed"])
    name = "".join(word.capitalize() for word in described["name"].split("_"))
    return type(f"{name}Field", (base,), members)


def spec_fields(op: str) -> tuple[type[SpecField], ...]:
    """Return a field class for each field of the operation's spec, in the order of the model."""
    return tuple(field_type(described) for described in generator_data()["operations"][op]["fields"])
