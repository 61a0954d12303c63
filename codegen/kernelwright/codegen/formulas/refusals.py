"""Result of a rule: a sentence that says why a kernel does not serve a problem, or None."""

from __future__ import annotations

Refusal = str | None


class Invalid(str):
    """A sentence about a problem that no kernel can serve: KW_INVALID_ARGUMENT instead of KW_UNSUPPORTED."""
