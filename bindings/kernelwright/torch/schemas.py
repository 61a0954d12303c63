"""Schemas of the attention operators, and their arguments by name: each list of arguments is written only here."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import torch  # pants: no-infer-dep

_record_of: Any = namedtuple  # mypy wants to know its fields


class Schema:
    """An operator's schema as torch writes it, without keyword-only arguments."""

    def __init__(self, text: str) -> None:
        """``text`` is name, arguments and results."""
        self.text = text
        parsed = torch._C.parse_schema(f"kernelwright::{text}").arguments
        defaults = [one.default_value for one in parsed if one.has_default_value()]
        self._record = _record_of("Arguments", [one.name for one in parsed], defaults=defaults)

    def arguments(self, given: Any) -> Any:
        """The arguments of a call by name; torch omits those that have default values."""
        return self._record._make(given) if len(given) == len(self._record._fields) else self._record(*given)

    def of(self, call: Any, **more: Any) -> Any:
        """The arguments of a call, taking those of the same name from another call."""
        return self._record(*(more[name] if name in more else getattr(call, name) for name in self._record._fields))

    def gradients(self, **by_name: Any) -> tuple[Any, ...]:
        """Return values of a backward pass: the gradients by name, None for all other arguments."""
        return tuple(by_name.get(name) for name in self._record._fields)


def keep(ctx: Any, call: Any, output: tuple[torch.Tensor, ...]) -> None:
    """Keep arguments and results for :func:`kept`: tensors as autograd requires, the rest on ``ctx``."""
    tensors = {name: one for name, one in call._asdict().items() if isinstance(one, torch.Tensor)}
    ctx.names, ctx.rest = tuple(tensors), call._replace(**dict.fromkeys(tensors))
    ctx.save_for_backward(*tensors.values(), *output)


def kept(ctx: Any) -> tuple[Any, ...]:
    """The arguments by name, and each result."""
    saved = ctx.saved_tensors
    return ctx.rest._replace(**dict(zip(ctx.names, saved, strict=False))), *saved[len(ctx.names) :]


_FEATURES = (
    'str mask="none", int window_left=-1, int window_right=-1, float? scale=None, float soft_cap=0.0, '
    "float dropout_p=0.0"
)
_LAST = 'bool deterministic=False, str dispatcher=""'
_QKV = "Tensor q, Tensor k, Tensor v"
_GIVEN = f"{_QKV}, Tensor out, Tensor grad, Tensor lse"
_ROWS = "Tensor cu_q, Tensor cu_k, SymInt max_q, SymInt max_k, Tensor? seqused_k, Tensor? slopes"

ATTENTION = Schema(
    f"attention({_QKV}, Tensor? bias, Tensor? slopes, Tensor? sinks, Tensor? seed, {_FEATURES}, "
    f"bool with_lse=True, {_LAST}) -> (Tensor, Tensor)"
)
ATTENTION_BACKWARD = Schema(
    f"attention_backward({_GIVEN}, Tensor? bias, Tensor? slopes, Tensor? seed, {_FEATURES}, "
    f"bool with_dbias=False, {_LAST}) -> (Tensor, Tensor, Tensor, Tensor)"
)
VARLEN = Schema(
    f"attention_varlen({_QKV}, {_ROWS}, Tensor? sinks, Tensor? seed, {_FEATURES}, bool with_lse=True, {_LAST})"
    " -> (Tensor, Tensor)"
)
VARLEN_BACKWARD = Schema(
    f"attention_varlen_backward({_GIVEN}, {_ROWS}, Tensor? seed, {_FEATURES}, {_LAST}) -> (Tensor, Tensor, Tensor)"
)
