"""``kernelwright::norm`` and ``kernelwright::add_norm``: RMS norm and layer norm, also of a sum with a residual."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, overload

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError
from kernelwright.torch import dispatchers, inputs
from kernelwright.torch.fallback import decisions, norms
from kernelwright.torch.fallback.decisions import UnservedError
from kernelwright.torch.operator import laid_out, plain, register
from kernelwright.torch.operators import norm_gradient

__all__ = ["layer_norm", "rms_norm"]

_OPTIONS = 'str kind, float eps, str dispatcher=""'
_NORM = f"norm(Tensor x, Tensor? weight, Tensor? bias, {_OPTIONS}) -> Tensor"
_ADD_NORM = f"add_norm(Tensor x, Tensor residual, Tensor? weight, Tensor? bias, {_OPTIONS}) -> (Tensor, Tensor)"
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)
_DECISIONS = {False: decisions.of("norm"), True: decisions.of("add_norm")}
_TORCHS = {kind: norms.of_kind(kind) for kind in ("rms", "layer")}


@overload
def rms_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None, *,
    residual: None = None, dispatcher: str = "",
) -> torch.Tensor: ...  # fmt: skip
@overload
def rms_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None, *,
    residual: torch.Tensor, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]: ...  # fmt: skip
def rms_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None, *,
    residual: torch.Tensor | None = None, dispatcher: str = "",
) -> Any:  # fmt: skip
    """RMS norm over the last dimensions of ``x + residual`` in one kernel; see :func:`torch.nn.functional.rms_norm`.

    Gradients of ``x``, ``weight`` and ``residual`` are computed by the same dispatcher. Under autocast, torch's own
    operator runs.

    :param x: (…, \\*normalized_shape) in float32, float16 or bfloat16.
    :param normalized_shape: the last dimensions of ``x``, normalised together.
    :param weight: tensor of ``normalized_shape``, in the dtype of ``x`` or float32.
    :param eps: added to the mean of squares; by default that of the dtype of ``x``.
    :param residual: a tensor with the shape and dtype of ``x``, added to it first.
    :param dispatcher: a dispatcher's name, as given to :func:`use`.
    :returns: the norm, with the shape and dtype of ``x``; with a residual, a tuple of it and the sum.
    :raises DispatcherNotFoundError: for a name that is not in use on the device of ``x``.
    :raises ArrayError: for tensors that do not fit together, or are on different devices.
    :raises NoKernelError: in a :func:`strict` region, if no kernel serves the problem or its gradients.
    """
    return _called("rms", x, normalized_shape, weight, None, eps, residual, dispatcher)


@overload
def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None, eps: float = 1e-5, *, residual: None = None, dispatcher: str = "",
) -> torch.Tensor: ...  # fmt: skip
@overload
def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None, eps: float = 1e-5, *, residual: torch.Tensor, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]: ...  # fmt: skip
def layer_norm(
    x: torch.Tensor, normalized_shape: Sequence[int], weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None, eps: float = 1e-5, *, residual: torch.Tensor | None = None, dispatcher: str = "",
) -> Any:  # fmt: skip
    """Layer norm over the last dimensions of ``x + residual``; see :func:`torch.nn.functional.layer_norm`.

    :param bias: tensor of ``normalized_shape``, in the dtype of the weight.

    Everything else is as for :func:`rms_norm`.
    """
    return _called("layer", x, normalized_shape, weight, bias, eps, residual, dispatcher)


def _called(
    kind: str, x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float | None, residual: Any, dispatcher: str
) -> Any:
    given = x, weight, bias, residual, tuple(shape), eps, dispatcher
    return _DECISIONS[residual is not None].call(_OURS[kind], _TORCHS[kind], given, 4)


def _norm(
    kind: str, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, residual: torch.Tensor | None,
    shape: tuple[int, ...], eps: float | None, dispatcher: str,
) -> Any:  # fmt: skip
    inputs.check_tensors(x=x, weight=weight, bias=bias, residual=residual)
    inputs.check_devices(x=x, weight=weight, bias=bias, residual=residual)
    inputs.check_options(dispatcher=dispatcher)
    _check(x, weight, bias, residual, shape)
    columns = math.prod(shape)
    rows = (x.numel() // columns, columns)
    vectors = [None if one is None else one.reshape(columns).contiguous() for one in (weight, bias)]
    epsilon = torch.finfo(x.dtype).eps if eps is None else float(eps)
    x2 = _rows("x", x, rows)
    if residual is None:
        return NORM(x2, *vectors, kind, epsilon, dispatcher).view(x.shape)
    outputs = ADD_NORM(x2, _rows("residual", residual, rows), *vectors, kind, epsilon, dispatcher)
    return tuple(one.view(x.shape) for one in outputs)


_OURS = {kind: partial(_norm, kind) for kind in _TORCHS}


def _rows(name: str, tensor: torch.Tensor, rows: tuple[int, int]) -> torch.Tensor:
    return inputs.addressable(name, inputs.reshaped(name, tensor, rows), rows=False)


def _check(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, residual: torch.Tensor | None,
    shape: tuple[int, ...],
) -> None:  # fmt: skip
    """Raise ArrayError for operands that do not fit together, UnservedError for those that only torch takes."""
    if not shape or tuple(x.shape[-len(shape) :]) != shape:
        raise ArrayError(f"normalized_shape is {shape} and x has shape {tuple(x.shape)}; allowed: its last dimensions")
    for name, operand in (("weight", weight), ("bias", bias)):
        if operand is not None and tuple(operand.shape) != shape:
            raise ArrayError(f"{name} has shape {tuple(operand.shape)}; allowed: {shape}")
    if residual is not None and (residual.shape != x.shape or residual.dtype != x.dtype):
        raise ArrayError(
            f"residual is {tuple(residual.shape)} {residual.dtype} and x {tuple(x.shape)} {x.dtype}; they must be equal"
        )
    if x.dtype not in _DTYPES:
        raise UnservedError(f"x: dtype {x.dtype} is served by no kernel; allowed: {', '.join(map(str, _DTYPES))}")
    first = x.dtype if weight is None else weight.dtype
    if first not in (x.dtype, torch.float32) or (bias is not None and bias.dtype != first):
        raise UnservedError("weight and bias are served by no kernel; allowed: both of the dtype of x, or float32")
    if math.prod(shape) == 0:
        raise UnservedError("rows without elements are served by no kernel")
    if inputs.autocast_dtype(x) is not None:
        raise UnservedError("norms under autocast are served by no kernel: torch chooses their dtypes")


def _call(dispatcher: str, kind: str, x: torch.Tensor, eps: float, bias: torch.Tensor | None, **given: Any) -> None:
    in_use = dispatchers.find(dispatcher, x.device)
    vectors = {"bias": plain(bias)} if bias is not None else {}
    run = in_use.rms_norm if kind == "rms" else in_use.layer_norm
    run(plain(x), epsilon=eps, **vectors, **{name: None if one is None else plain(one) for name, one in given.items()})


def _run(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str, eps: float, dispatcher: str = ""
) -> torch.Tensor:
    out = x.new_empty(x.shape)
    _call(dispatcher, kind, x, eps, bias, weight=weight, out=out)
    return out


def _fake(
    x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str, eps: float, dispatcher: str = ""
) -> torch.Tensor:
    return x.new_empty(x.shape)


def _run_added(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
    eps: float, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    out, total = x.new_empty(x.shape), x.new_empty(x.shape)
    _call(dispatcher, kind, x, eps, bias, weight=weight, out=out, residual=residual, sum=total)
    return out, total


def _fake_added(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, kind: str,
    eps: float, dispatcher: str = "",
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    return x.new_empty(x.shape), x.new_empty(x.shape)


NORM = register(
    _NORM, _run, laid_out(norms.forward, _fake), _fake, norm_gradient.save, norm_gradient.backward
)  # fmt: skip
ADD_NORM = register(
    _ADD_NORM, _run_added, laid_out(norms.add_forward, _fake_added), _fake_added, norm_gradient.save_added,
    norm_gradient.backward_added,
)  # fmt: skip
