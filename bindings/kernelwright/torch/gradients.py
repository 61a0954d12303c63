"""Reverse-mode derivatives of operators, compatible with ``torch.func`` transforms.

``torch.library.register_autograd`` makes an ``autograd.Function`` without ``setup_context``, which transforms refuse.
They need none at torch's dispatch key Autograd, which each transform enters once for its own level: a C++ operator of
torch records itself there, runs itself below that key, and meets the next transform there. The kernels here do the
same.

A public ``autograd.Function`` with ``setup_context``, ``vmap`` and ``jvp`` in front of the operator would need none of
torch's private functions. It takes 52 us for a recorded product of 4x8 and 8x6, this takes 28 us (mock kernels, torch
2.13), because its ``apply`` and ``setup_context`` run in Python; and a forward-mode derivative needs the product of
each tangent and, for an activation, its argument, which a fused kernel does not write.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch  # pants: no-infer-dep
from torch._functorch.autograd_function import enable_single_level_autograd_function  # pants: no-infer-dep

_below_autograd = torch._C._AutoDispatchBelowAutograd
_transformed = torch._C._are_functorch_transforms_active


class _Call(NamedTuple):
    """One call of an operator. Autograd does not see tensors within lists, so lists are spread into arguments.

    :ivar keyset: torch's dispatch keys of this call.
    :ivar lists: for each argument the number of tensors in its list, or None if it is not a list of tensors.
    """

    keyset: Any
    lists: tuple[int | None, ...]

    def spread(self, values: Sequence[Any]) -> list[Any]:
        """Spread one value per argument into one per tensor; a None for a list becomes one per element."""
        one_each: list[Any] = []
        for value, count in zip(values, self.lists, strict=True):
            one_each.extend([value] if count is None else [None] * count if value is None else value)
        return one_each

    def gathered(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """The inverse of :meth:`spread`."""
        rest = iter(values)
        return tuple(next(rest) if count is None else [next(rest) for _ in range(count)] for count in self.lists)


def register(
    library: Any,
    name: str,
    save: Callable[[Any, tuple[Any, ...], Any], None],
    backward: Callable[..., Any],
) -> None:
    """Have ``torch.ops.kernelwright.<name>`` record itself for ``backward``.

    :param library: defines the operator, which has no keyword-only arguments.
    :param save: called with ``ctx``, all arguments and the result.
    :param backward: returns the gradients of all arguments, given ``ctx`` and the gradients of the results.
    """
    operator = getattr(torch.ops.kernelwright, name).default
    defaults = [argument.default_value for argument in operator._schema.arguments]
    function = _function(operator, save, backward)

    def record(keyset: Any, *given: Any) -> Any:
        arguments = (*given, *defaults[len(given) :])  # torch omits arguments that have default values
        if not torch.is_grad_enabled() or not torch._C._any_requires_grad(*arguments):
            return _run_below(operator, keyset, arguments)
        call = _Call(keyset, tuple(_tensors(each) for each in arguments))
        with enable_single_level_autograd_function() if _transformed() else nullcontext():
            return function.apply(call, *call.spread(arguments))

    library.impl(name, record, "Autograd", with_keyset=True)


def _tensors(argument: Any) -> int | None:
    all_tensors = isinstance(argument, list | tuple) and all(isinstance(each, torch.Tensor) for each in argument)
    return len(argument) if all_tensors else None


def _run_below(operator: Any, keyset: Any, arguments: Sequence[Any]) -> Any:
    with _below_autograd():
        return operator.redispatch(keyset & torch._C._after_autograd_keyset, *arguments)


def _function(operator: Any, save: Callable[..., None], backward: Callable[..., Any]) -> Any:
    def run(ctx: Any, call: _Call, *spread: Any) -> Any:
        arguments = call.gathered(spread)
        # Autograd has turned itself off for this level; the transforms below, each a level of its own, record.
        with torch.enable_grad() if _transformed() else nullcontext():
            result = _run_below(operator, call.keyset, arguments)
        ctx.call = call
        save(ctx, arguments, result)
        return result

    def differentiate(ctx: Any, *grads: Any) -> Any:
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = ctx.call.gathered(needed[1:])
        try:
            gradients = backward(ctx, *grads)
        finally:
            ctx.needs_input_grad = needed
        return None, *ctx.call.spread(gradients)

    members = {"forward": staticmethod(run), "backward": staticmethod(differentiate)}
    # Not autograd.Function, whose apply sends transforms to setup_context: this one records at the current level.
    base = torch.autograd.function._SingleLevelFunction
    return types.new_class(f"kernelwright_{operator._opname}", (base,), {}, lambda body: body.update(members))
