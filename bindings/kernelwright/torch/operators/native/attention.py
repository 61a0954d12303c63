"""Attention on the native road: what it learns of a call, and gradients of results it has computed."""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch.operations.attention.from_arrays import AttentionOptions
from kernelwright.problems.attention.structs import AttentionArgs
from kernelwright.torch import dispatchers
from kernelwright.torch.operators import attention_gradient
from kernelwright.torch.operators.attention_inputs import bias, fold
from kernelwright.torch.operators.native.taught import Lesson, Taught, records, same_memory
from kernelwright.torch.road import launch, launch_all, launch_pair
from kernelwright.torch.schemas import ATTENTION

_TAUGHT = Taught("attention", "scaled_dot_product_attention")
_KINDS = _TAUGHT.kinds
_NUMBERS = {int, float}


def _option(dropout_p: Any, is_causal: Any, scale: Any, enable_gqa: Any, recorded: bool) -> Any:
    """Option key of a plan; None for the Python road, which is needed to draw dropout seeds."""
    if type(dropout_p) not in _NUMBERS or dropout_p or (scale is not None and type(scale) is not float):
        return None
    return bool(is_causal), scale, bool(enable_gqa), recorded


def attention(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, enable_gqa: bool, deterministic: bool,
) -> Any:  # fmt: skip
    """Return the result, with its gradient recorded; None if the Python road must be taken."""
    if records() and recorded(query, key, value, attn_mask):
        option = _option(dropout_p, is_causal, scale, enable_gqa, True)
        tensors = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
        results = None if option is None else launch_pair(_KINDS, option, tensors)
        if results is None:
            return None
        return _Attention.apply(results, query, key, value, attn_mask, bool(is_causal), scale, bool(deterministic))
    option = _option(dropout_p, is_causal, scale, enable_gqa, False)
    if option is None:
        return None
    if attn_mask is None:
        return launch(_KINDS, option, query, key, value)
    return launch_all(_KINDS, option, (query, key, value, attn_mask))


def recorded(*tensors: Any) -> bool:
    """Whether one of them requires grad; False for non-tensors, which the Python road refuses."""
    try:
        return any(one is not None and one.requires_grad for one in tensors)
    except AttributeError:
        return False


class _Attention(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records attention that has been computed. No transform is active."""

    @staticmethod
    def forward(
        ctx: Any, computed: Any, q: Any, k: Any, v: Any, mask: Any, causal: bool, scale: Any, deterministic: bool
    ) -> torch.Tensor:
        """Return O, the first of the results O and LSE; not passed as inputs, of which autograd would make views."""
        out, lse = computed
        ctx.save_for_backward(q, k, v, mask, out, lse)
        ctx.rules = causal, scale, deterministic
        result: torch.Tensor = out
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`attention_gradient.of_operands`."""
        *operands, out, lse = ctx.saved_tensors
        causal, scale, deterministic = ctx.rules
        rules = ("top_left", -1, 0) if causal else ("none", -1, -1)
        call = ATTENTION.arguments((*operands, None, None, None, *rules, scale, 0.0, 0.0, True, deterministic, ""))
        needed = ctx.needs_input_grad[1:5]
        gradients = attention_gradient.of_operands(call, out, lse, grad, needed[3], False)
        return None, *(one if needs else None for one, needs in zip(gradients, needed, strict=False)), None, None, None


def learn(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attn_mask: torch.Tensor | None, dropout_p: float,
    is_causal: bool, scale: float | None, enable_gqa: bool, result: torch.Tensor, generation: int,
) -> None:  # fmt: skip
    """Teach the native road the plan of attention that the dispatcher in use has just launched.

    It can be taught if kernels read all operands in place, with four dimensions if gradients are recorded.
    """
    tensors = (query, key, value) if attn_mask is None else (query, key, value, attn_mask)
    with_lse = records() and recorded(*tensors)
    option = _option(dropout_p, is_causal, scale, enable_gqa, with_lse)
    if option is None:
        return
    made = result.detach()

    def lesson(*given: torch.Tensor) -> Lesson | None:
        return _planned(given, option, made)

    _TAUGHT.learn(tensors, option, generation, lesson)


def _planned(given: tuple[torch.Tensor, ...], option: Any, result: torch.Tensor) -> Lesson | None:
    causal, scale, enable_gqa, with_lse = option
    folded = fold(given[0], given[1], given[2], enable_gqa)
    added = bias(given[3], folded) if len(given) == 4 else None
    read = [folded.query, folded.key, folded.value, *([] if added is None else [added])]
    if not same_memory(read, given):
        return None
    if with_lse and any(one.shape != other.shape for one, other in zip(read, given, strict=True)):
        return None  # autograd records views of them, on the Python road
    out = attention_gradient.beside(folded.query, folded.value.shape[-1])
    # Like the Python road: a reshape to the same extents would change strides of extents of 1.
    shaped = out if out.dim() == len(folded.out) else out.reshape(folded.out)
    if shaped.data_ptr() != out.data_ptr() or shaped.stride() != result.stride() or shaped.shape != result.shape:
        return None
    lse = out.new_empty(out.shape[:-1], dtype=torch.float32) if with_lse else None
    in_use = dispatchers.find("", out.device)
    window = (-1, 0) if causal else None
    options = AttentionOptions(
        "forward", "bhsd", mask="top_left" if causal else "none", window=window, scale=scale, lse=with_lse
    )
    names = {"q": folded.query, "k": folded.key, "v": folded.value, "bias": added}
    plan = in_use._attention.plan({**names, "o": out, "lse": lse}, options)
    places = [getattr(AttentionArgs, name).offset for name, one in names.items() if one is not None]
    written = [AttentionArgs.o.offset, *([AttentionArgs.lse.offset] if with_lse else [])]
    return Lesson(in_use, plan, (shaped,) if lse is None else (shaped, lse), (places, written))
