"""Calls of ``torch.nn.functional.scaled_dot_product_attention`` from within adopted modules.

Models look that function up in torch. While modules are adopted, a replacement stands there, which calls ours within
their ``forward`` in this thread, and torch's everywhere else.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.operators.attention import scaled_dot_product_attention
from torch import nn  # pants: no-infer-dep
from torch.nn import functional  # pants: no-infer-dep

_CALLERS = (nn.MultiheadAttention,)  # torch's own modules that call it


class _Within(threading.local):
    depth = 0


class _Before:
    """The function that stood in torch before ours."""

    function: Any = functional.scaled_dot_product_attention


_within = _Within()
_adopted: weakref.WeakSet[nn.Module] = weakref.WeakSet()


def _either(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None, enable_gqa: bool = False,
) -> torch.Tensor:  # fmt: skip
    """Call torch's function, or within adopted modules ours."""
    chosen: Any = scaled_dot_product_attention if _within.depth else _Before.function
    result: torch.Tensor = chosen(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
    return result


def may_call(module: nn.Module) -> bool:
    """Whether a module's own ``forward`` may call attention; torch's own layers may not."""
    ours = type(module).__module__.startswith("torch.nn.") or isinstance(module, torch.jit.ScriptModule)
    return isinstance(module, _CALLERS) or not (ours or "forward" in vars(module))


def forward(module: nn.Module, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """The ``forward`` of a module that may call attention."""
    if functional.scaled_dot_product_attention is not _either:  # a copy whose model was released
        _install(module)
    _within.depth += 1
    try:
        return cls.forward(module, *args, **kwargs)
    finally:
        _within.depth -= 1


def _install(module: nn.Module) -> None:
    _adopted.add(module)
    if functional.scaled_dot_product_attention is not _either:
        _Before.function = functional.scaled_dot_product_attention
        functional.scaled_dot_product_attention = _either


def begin(module: nn.Module) -> None:
    """Replace torch's function, before the module gets :func:`forward`."""
    _install(module)


def end(module: nn.Module) -> None:
    """Forget a module that has its own ``forward`` again; after the last one, restore torch's function."""
    _adopted.discard(module)
    if not _adopted and functional.scaled_dot_product_attention is _either:
        functional.scaled_dot_product_attention = _Before.function
