"""Dependencies of the kernels of a set, which have none and share one request for them.

Pants 2.17 resolves the dependencies of each target anew in every run, with four nodes of its graph for each target. For
10,000 kernels, ``peek`` took 2.41 CPU s with them and 2.14 s without, the daemon 833 MB and 681 MB
(``benchmarks/build/patches.py``).
"""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

from typing import Any, Optional, Type

from pants.engine.addresses import Address
from pants.engine.target import Dependencies, Field, InvalidFieldException, Target


class Expansion(tuple):  # type: ignore[type-arg]
    """The empty dependencies of the kernels of one expansion."""

    name: str

    def __new__(cls, name: str) -> Expansion:
        self = super().__new__(cls)
        self.name = name
        return self


class SharedDependenciesField(Dependencies):
    """The dependencies of a kernel of a set, which are none; equal for all kernels of the set.

    Equal fields are one question, which Pants answers once for a set, for the kernel that comes first. The expansion
    is part of the question, so that this kernel still exists whenever the question is asked again.
    """

    value: Expansion

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> Expansion:
        if not isinstance(raw_value, str):
            raise InvalidFieldException(f"{address}: the kernels of a set have no dependencies")
        return Expansion(raw_value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDependenciesField) and self.value.name == other.value.name

    def __hash__(self) -> int:
        return hash(self.value.name)


class SharingTarget(Target):
    """A target that shares its dependencies with all targets of the same ``expansion``."""

    @property
    def expansion(self) -> Optional[str]:
        """An identifier shared by targets with the same dependencies; None if the target shares nothing."""
        raise NotImplementedError

    def get(self, field: Type[Field], *, default_raw_value: Optional[Any] = None) -> Any:  # type: ignore[misc]
        if field is Dependencies and self.expansion is not None:
            return SharedDependenciesField(self.expansion, self.address)
        return super().get(field, default_raw_value=default_raw_value)
