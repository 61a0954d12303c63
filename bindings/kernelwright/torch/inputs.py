"""What public functions do with operands first: refuse what no kernel reads, cast under autocast, copy as torch does.

Copies are told by the logger ``kernelwright.torch`` at level DEBUG.
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
    """ArrayError, by the operand's name, for what is no dense tensor of at most 32 bits. None is absent.

    For tensors that torch's own operators may take it is an UnservedError.
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
    """UnservedError for a dtype that no kernel multiplies."""
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
    """The dtype of the autocast region on the tensor's device; None where there is none."""
    kind = tensor.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return None
    return torch.get_autocast_dtype(kind)


def autocast(*tensors: Any, to: torch.dtype | None = None) -> tuple[Any, ...]:
    """The tensors in the dtype of the autocast region of the first one's device, or in ``to`` there.

    As in torch, float64 and what is no floating-point number stay, and None does; so do floats of 8 bits, which are no
    narrow copies but quantised.
    """
    dtype = autocast_dtype(tensors[0])
    if dtype is None:
        return tensors
    return tuple(one.to(to or dtype) if _narrows(one) else one for one in tensors)


def _narrows(tensor: torch.Tensor | None) -> bool:
    return tensor is not None and tensor.is_floating_point() and 1 < tensor.element_size() < 8


def copied(name: str, tensor: torch.Tensor, why: str) -> torch.Tensor:
    """A contiguous copy, where torch would make one; :func:`tell_copy` tells it."""
    tell_copy(name, tensor, why)
    return tensor.contiguous()


class CopyNeededError(Exception):
    """An operand would be copied, within :func:`refusing_copies`. Never leaves the package."""


class _Thread(threading.local):
    refuses_copies = False


_THREAD = _Thread()


@contextlib.contextmanager
def refusing_copies() -> Iterator[None]:
    """A region in which nothing is copied, or told: CopyNeededError where an operand would be."""
    _THREAD.refuses_copies = True
    try:
        yield
    finally:
        _THREAD.refuses_copies = False


def tell_copy(name: str, tensor: torch.Tensor, why: str) -> None:
    """Have the logger ``kernelwright.torch`` tell, at level DEBUG, that an operand is about to be copied.

    :param why: what about the tensor's memory no kernel addresses, such as ``"its last dimension is strided"``.
    """
    if _THREAD.refuses_copies:
        raise CopyNeededError
    if not torch.compiler.is_compiling():  # compilers do not trace loggers, and plan their own copies
        _LOG.debug("%s %s with strides %s is copied: %s", name, tuple(tensor.shape), tensor.stride(), why)


def addressable(name: str, tensor: torch.Tensor, rows: bool = True) -> torch.Tensor:
    """The tensor, or a copy where its last dimension is strided or broadcast, or, if asked, all ``rows`` are one."""
    if tensor.stride(-1) != 1 and tensor.shape[-1] > 1:
        return copied(name, tensor, "the last dimension is not contiguous")
    if rows and tensor.stride(-2) == 0 and tensor.shape[-2] > 1:
        return copied(name, tensor, "all rows are one")
    return tensor


def reshaped(name: str, tensor: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """The tensor in another shape, or a copy where its strides do not allow a view."""
    if tuple(tensor.shape) == tuple(shape):
        return tensor
    if not torch.compiler.is_compiling():
        try:
            return tensor.view(shape)
        except RuntimeError:
            tell_copy(name, tensor, f"no view of it has shape {tuple(shape)}")
    return tensor.reshape(shape)


def check_options(**options: Any) -> None:
    """ProblemError for what is no text, where torch would speak of the schema of an operator."""
    for name, value in options.items():
        if not isinstance(value, str):
            raise ProblemError(f"{name} is {value!r}; allowed: text; pass one of the names that are documented")


def check_devices(**operands: Any) -> None:
    """ArrayError unless all tensors are on the device of the first one. None is absent."""
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
