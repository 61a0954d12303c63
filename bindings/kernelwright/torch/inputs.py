"""Preparation of operands in public functions: refuse unreadable ones, cast under autocast, copy as torch does.

The logger ``kernelwright.torch`` reports copies at level DEBUG.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, ProblemError
from kernelwright.torch.fallback.decisions import UnservedError

_LOG = logging.getLogger("kernelwright.torch")


def check_tensors(**operands: Any) -> None:
    """Raise ArrayError, with the operand's name, unless it is a dense tensor of at most 32 bits. None is absent.

    Raises UnservedError for tensors that torch's own operators may accept.
    """
    for name, operand in operands.items():
        if operand is None:
            continue
        if not isinstance(operand, torch.Tensor):
            kind = type(operand)
            advice = f"torch.from_numpy({name})" if kind.__module__ == "numpy" else f"torch.as_tensor({name})"
            raise ArrayError(
                f"{name} is a {kind.__module__}.{kind.__qualname__}; allowed: a torch.Tensor; pass {advice}, or call "
                "kernelwright.dispatch.Dispatcher, which takes arrays of any library"
            )
        if operand.layout is not torch.strided or operand.is_nested:
            what = "a nested tensor" if operand.is_nested else f"a tensor of layout {operand.layout}"
            raise UnservedError(
                f"{name} is {what}; allowed: a dense (strided) one; pass {name}.to_dense() or its values"
            )
        if operand.dtype == torch.float64 or operand.dtype.is_complex:
            raise UnservedError(
                f"{name} is {operand.dtype}, which no kernel computes; allowed: torch.float32, torch.float16, "
                f"torch.bfloat16 and those of 8 bits; pass {name}.to(torch.float32), or call torch's own operator"
            )


def check_dtype(name: str, operand: torch.Tensor) -> None:
    """Raise UnservedError for a dtype that no kernel multiplies."""
    if operand.dtype not in _MULTIPLIED:
        text = str(operand.dtype).rpartition(".")[2]
        allowed = ", ".join(str(dtype).rpartition(".")[2] for dtype in _MULTIPLIED)
        raise UnservedError(f"{name}: dtype {text} is served by no kernel; allowed: {allowed}")


_MULTIPLIED = dict.fromkeys(
    (
        *(torch.float32, torch.float16, torch.bfloat16, torch.int8),
        *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
    )
)


def autocast_dtype(tensor: torch.Tensor) -> torch.dtype | None:
    """The dtype of the autocast region on the tensor's device; None outside of any."""
    kind = tensor.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


def autocast(*tensors: Any, to: torch.dtype | None = None) -> tuple[Any, ...]:
    """Cast tensors to the dtype of the autocast region on the first one's device, or there to ``to``.

    As in torch, float64, non-floating-point dtypes and None are left alone; so are 8-bit floats, which are quantised
    values rather than narrow copies.
    """
    dtype = autocast_dtype(tensors[0])
    if dtype is None:
        return tensors
    return tuple(one.to(to or dtype) if _narrows(one) else one for one in tensors)


def _narrows(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.is_floating_point() and 1 < tensor.element_size() < 8


def copied(name: str, tensor: torch.Tensor, why: str) -> torch.Tensor:
    """A contiguous copy, made in the cases where torch would make one; reported by :func:`tell_copy`."""
    tell_copy(name, tensor, why)
    return tensor.contiguous()


class CopyNeededError(Exception):
    """An operand would be copied within :func:`refusing_copies`. Never leaves the package."""


class _Thread(threading.local):
    refuses_copies = False


_THREAD = _Thread()


@contextlib.contextmanager
def refusing_copies() -> Iterator[None]:
    """A region in which nothing is copied or reported: CopyNeededError if an operand would be."""
    _THREAD.refuses_copies = True
    try:
        yield
    finally:
        _THREAD.refuses_copies = False


def tell_copy(name: str, tensor: torch.Tensor, why: str) -> None:
    """Report, through the logger ``kernelwright.torch`` at level DEBUG, that an operand is about to be copied.

    :param why: the property of the tensor's memory that no kernel addresses, such as ``"its last dimension is
        strided"``.
    """
    if _THREAD.refuses_copies:
        raise CopyNeededError
    if not torch.compiler.is_compiling():  # compilers do not trace loggers, and plan their own copies
        _LOG.debug("%s %s with strides %s is copied: %s", name, tuple(tensor.shape), tensor.stride(), why)


def addressable(name: str, tensor: torch.Tensor, rows: bool = True) -> torch.Tensor:
    """The tensor, or a copy if its last dimension is strided or broadcast or, with ``rows``, all rows are one."""
    if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        return copied(name, tensor, "the last dimension is not contiguous")
    if rows and tensor.stride(-2) == 0 and tensor.shape[-2] > 1:
        return copied(name, tensor, "all rows are one")
    return tensor


def reshaped(name: str, tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The tensor in another shape, or a copy if its strides do not allow a view."""
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    if not torch.compiler.is_compiling():
        try:
            return tensor.view(shape)
        except RuntimeError:
            tell_copy(name, tensor, f"no view of it has shape {tuple(shape)}")
    return tensor.reshape(shape)


def check_options(**options: Any) -> None:
    """Raise ProblemError for options that are not text, instead of torch's error about an operator's schema."""
    for name, value in options.items():
        if not isinstance(value, str):
            raise ProblemError(f"{name} is {value!r}; allowed: text; pass one of the names that are documented")


def check_devices(**operands: Any) -> None:
    """Raise ArrayError unless all tensors are on the device of the first one. None is absent."""
    first: tuple[str, Any] | None = None
    for name, operand in operands.items():
        if operand is None:
            continue
        first = first or (name, operand.device)
        if operand.device != first[1]:
            raise ArrayError(
                f"{name} is on {operand.device} and {first[0]} on {first[1]}; allowed: one device; pass "
                f"{name}.to({first[0]}.device)"
            )
