"""Words of command lines: a misspelt one gets a proposal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from kernelwright.codegen.violations import closest


class Choice(click.Choice):  # type: ignore[type-arg]  # which takes no type before click 8.2
    """One of several words; the error for another proposes the closest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Convert as click does."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            text = proposing(error.message, value, map(str, self.choices))
            raise click.BadParameter(text, ctx, param) from None


def proposing(message: str, word: object, allowed: Iterable[str]) -> str:
    """Return a message of click's that ends with the proposal for a misspelt word, if one is close."""
    return f"{message.removesuffix('.')}{closest(word, allowed)}."
