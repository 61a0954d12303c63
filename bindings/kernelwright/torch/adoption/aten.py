"""``intercept``: have products, convolutions and attention of any code run kernels, at ATen level, below autograd.

torch records gradients as before; the backward pass calls ATen too, and is intercepted if it runs within the region.
Calls that no kernel serves, and all other operators, run unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import inputs
from kernelwright.torch.adoption.layers import keeps_channels_last
from kernelwright.torch.fallback import decisions
from kernelwright.torch.operators import attention, attention_gradient, convolution, convolution_gradient, gemm
from kernelwright.torch.operators.convolution_launch import channels_last
from kernelwright.torch.operators.gemm_shapes import as_product
from torch.utils._python_dispatch import TorchDispatchMode  # pants: no-infer-dep

_aten = torch.ops.aten
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_GEMM, _CONV, _ATTENTION = (decisions.of(name) for name in ("gemm", "conv", "attention"))
_GRADIENTS = {name: decisions.of(name) for name in ("conv_backward_data", "attention_backward")}


def _plain(*tensors: torch.Tensor | None) -> bool:
    """Whether kernels may read the tensors: dense, of one dtype, non-empty."""
    first: Any = tensors[0]
    return all(
        one is None
        or (one.dtype in _DTYPES and one.dtype == first.dtype and one.layout is torch.strided and one.numel() > 0)
        for one in tensors
    )


def _product(a: torch.Tensor, b: torch.Tensor, d: torch.Tensor | None = None, alpha: float = 1.0) -> torch.Tensor:
    product = as_product(a, b, [] if d is None else [d], ("a", "b") if d is None else ("a", "b", "bias"))
    result: torch.Tensor = gemm.OPERATOR(product.a, product.b, product.ds, "add", "none", float(alpha))
    return result if product.shape is None else result.reshape(product.shape)


def _mm(func: Any, a: torch.Tensor, b: torch.Tensor) -> Any:
    return _GEMM.call(_product, func, (a, b), 2) if _plain(a, b) else func(a, b)


def _addmm(func: Any, bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    def torchs(a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor, alpha: Any) -> Any:
        return func(bias, a, b, beta=beta, alpha=alpha)

    given = a, b, bias, alpha
    return _GEMM.call(_product, torchs, given, 3) if beta == 1 and _plain(a, b, bias) else torchs(*given)


def _convolve(
    x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int,
) -> torch.Tensor:  # fmt: skip
    result: torch.Tensor = convolution.OPERATOR(
        channels_last(x, "x", dense=False),
        channels_last(w, "w"),
        bias,
        None,
        stride,
        padding,
        padding,
        dilation,
        groups,
    )
    return result if keeps_channels_last(x, w) else result.contiguous()


def _sides(values: Sequence[int], w: torch.Tensor) -> tuple[int, ...]:
    return tuple(values) if len(values) == w.dim() - 2 else (*values,) * (w.dim() - 2)


def _convolution(
    func: Any, x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor | None, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
) -> Any:  # fmt: skip
    def torchs(x: Any, w: Any, bias: Any, *_: Any) -> Any:
        return func(x, w, bias, stride, padding, dilation, transposed, output_padding, groups)

    given = x, w, bias, *(_sides(one, w) for one in (stride, padding, dilation)), groups
    served = not transposed and x.dim() == w.dim() and w.dim() <= 5 and _plain(x, w, bias)
    return _CONV.call(_convolve, torchs, given, 3) if served else torchs(*given)


def _convolution_backward(
    func: Any, grad: torch.Tensor, x: torch.Tensor, w: torch.Tensor, bias_sizes: Any, stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], transposed: bool, output_padding: Sequence[int], groups: int,
    output_mask: Sequence[bool],
) -> Any:  # fmt: skip
    def torchs(*_: Any) -> Any:
        return func(grad, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)

    given = grad, x, w, *(_sides(one, w) for one in (stride, padding, dilation)), groups, tuple(output_mask)
    served = not transposed and x.dim() == w.dim() and w.dim() <= 5 and _plain(grad, x, w)
    return _GRADIENTS["conv_backward_data"].call(_gradients, torchs, given, 3) if served else torchs()


def _gradients(
    grad: torch.Tensor, x: torch.Tensor, w: torch.Tensor, stride: tuple[int, ...], padding: tuple[int, ...],
    dilation: tuple[int, ...], groups: int, output_mask: tuple[bool, ...],
) -> tuple[Any, ...]:  # fmt: skip
    window = stride, padding, padding, dilation, groups
    innermost = channels_last(grad)
    dx = dw = None
    if output_mask[0]:
        dx = convolution_gradient.DATA(innermost, channels_last(w), x.shape[2:], *window)
    if output_mask[1]:
        dw = convolution_gradient.WEIGHT(channels_last(x, dense=False), innermost, w.shape[2:], *window)
    if not keeps_channels_last(x, w):
        dx, dw = (None if one is None else one.contiguous() for one in (dx, dw))
    return dx, dw, grad.sum((0, *range(2, grad.dim()))) if output_mask[2] else None


def _bias(mask: torch.Tensor | None, k: torch.Tensor) -> torch.Tensor | None:
    if mask is None:
        return None
    mask = mask[(None,) * (4 - mask.dim())]
    return inputs.addressable("attn_mask", mask.expand(*mask.shape[:-1], k.shape[2]), rows=False)


def _rules(causal: bool) -> tuple[str, int, int]:
    return ("top_left", -1, 0) if causal else ("none", -1, -1)


def _attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None, causal: bool, scale: float | None
) -> tuple[torch.Tensor, torch.Tensor]:
    q, k, v = (inputs.addressable("operand", one) for one in (q, k, v))
    result: tuple[torch.Tensor, torch.Tensor] = attention.OPERATOR(
        q, k, v, _bias(mask, k), None, None, None, *_rules(causal), scale
    )
    return result


def _cpu_attention(
    func: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dropout_p: float = 0.0, is_causal: bool = False, *,
    attn_mask: torch.Tensor | None = None, scale: float | None = None,
) -> Any:  # fmt: skip
    def torchs(q: Any, k: Any, v: Any, mask: Any, *_: Any) -> Any:
        return func(q, k, v, dropout_p, is_causal, attn_mask=mask, scale=scale)

    given = q, k, v, attn_mask, is_causal, scale
    return (
        _ATTENTION.call(_attend, torchs, given, 4) if not dropout_p and _plain(q, k, v, attn_mask) else torchs(*given)
    )


def _cpu_attention_backward(
    func: Any, grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor,
    lse: torch.Tensor, dropout_p: float, is_causal: bool, *, attn_mask: torch.Tensor | None = None,
    scale: float | None = None,
) -> Any:  # fmt: skip
    def torchs(grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, mask: Any, *_: Any) -> Any:
        return func(grad, q, k, v, out, lse, dropout_p, is_causal, attn_mask=mask, scale=scale)

    given = grad, q, k, v, out, lse, attn_mask, is_causal, scale
    served = not dropout_p and _plain(q, k, v, grad, attn_mask)
    return _GRADIENTS["attention_backward"].call(_attend_backward, torchs, given, 7) if served else torchs(*given)


def _attend_backward(
    grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    mask: torch.Tensor | None, causal: bool, scale: float | None,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    q, k, v, out, grad = (inputs.addressable("operand", one) for one in (q, k, v, out, grad))
    grads: tuple[torch.Tensor, ...] = attention_gradient.OPERATOR(
        q, k, v, out, grad, lse.contiguous(), _bias(mask, k), None, None, *_rules(causal), scale
    )
    return grads[:3]


_HANDLERS: dict[Any, Callable[..., Any]] = {
    _aten.mm.default: _mm,
    _aten.bmm.default: _mm,
    _aten.addmm.default: _addmm,
    _aten.baddbmm.default: _addmm,
    _aten.convolution.default: _convolution,
    _aten.convolution_backward.default: _convolution_backward,
    _aten._scaled_dot_product_flash_attention_for_cpu.default: _cpu_attention,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _cpu_attention_backward,
}
# In inference mode these are not decomposed before they arrive.
_COMPOSITE = {
    *(_aten.linear.default, _aten.matmul.default, _aten.einsum.default, _aten.scaled_dot_product_attention.default),
    *(_aten._convolution_mode.default, _aten._convolution.default),
    *(getattr(_aten, f"conv{dims}d").default for dims in (1, 2, 3)),
    *(getattr(_aten, f"conv{dims}d").padding for dims in (1, 2, 3)),
}


class intercept(TorchDispatchMode):  # type: ignore[misc]
    """A region, in this thread, in which products, convolutions and attention run kernels, whoever calls them.

    It intercepts ``mm``, ``addmm``, ``bmm``, ``baddbmm``, ``convolution``, attention on CPUs, and their gradients if
    the backward pass runs in the region too. Every torch operator costs a few microseconds more; ``adopt`` costs less.
    Results have torch's memory format. Compiled functions run as they were compiled.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Called by torch."""
        kwargs = kwargs or {}
        handler = _HANDLERS.get(func)
        if handler is not None:
            return handler(func, *args, **kwargs)
        if func in _COMPOSITE:
            with self:
                return func.decompose(*args, **kwargs)
        return func(*args, **kwargs)
