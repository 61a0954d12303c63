"""Targets that propose the closest field where a BUILD file misspells one."""

from __future__ import annotations

import difflib
from typing import Any

from pants.engine.addresses import Address
from pants.engine.target import InvalidTargetException, Target


class ProposingTarget(Target):
    """Base of targets with many fields: Pants lists all of them, in which a misspelt one is hard to find."""

    def __init__(  # type: ignore[misc]  # final for type checkers; this only adds to the error
        self, unhydrated_values: dict[str, Any], address: Address, *others: Any, **named: Any
    ) -> None:
        """Create the target as Pants does."""
        try:
            super().__init__(unhydrated_values, address, *others, **named)
        except InvalidTargetException as error:
            fields = self._allowed(others[0] if others else named.get("union_membership"))
            unknown = next((name for name in unhydrated_values if name not in fields), "")
            close = difflib.get_close_matches(unknown, fields, n=1)
            if close:
                error.args = (f"{error} Did you mean `{close[0]}` instead of `{unknown}`?",)
            raise

    @classmethod
    def _allowed(cls, union_membership: Any) -> set[str]:
        moved = getattr(cls, "moved_fields", ())  # of generators
        return {field.alias for field in (*cls.class_field_types(union_membership), *moved)}
