"""Weights of linear layers in the order of CPU kernels, packed once and kept: :func:`prepack`.

A kernel packs its operands before it multiplies them. The weight of a layer is the same in every call, and at few rows
packing it takes longer than the product, so a packed copy is kept beside it.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher, NoKernelError, ProblemError
from kernelwright.torch import dispatchers
from kernelwright.torch.dispatchers import on_change

__all__ = ["Prepacked", "prepack", "prepacked"]

ROWS = range(8, 1024)
"""Numbers of rows for which packed weights pay. Kernels read the weight as it is for fewer, which takes less time; for
more, packing is a small part of a product. From ``benchmarks/cpu/prepacked.py``."""
_EXPECTED_ROWS = 64
_DTYPES = (torch.float32, torch.bfloat16, torch.float16)
_LOG = logging.getLogger("kernelwright.torch")
_autocast = torch._C._is_any_autocast_enabled
_transformed = torch._C._are_functorch_transforms_active
_modes = torch._C._len_torch_dispatch_stack
_traced = torch._C._is_tracing


@dataclass(frozen=True)
class Prepacked:
    """What is kept: the number of weights, their bytes, and the limit of these in bytes."""

    weights: int
    bytes: int
    limit: int


_ONCE = object()


class _Kept:
    """One packed weight; None for a weight that no kernel packs, ``_ONCE`` for one that was multiplied by once.

    A tensor that is a new view in each call is therefore never packed.
    """

    __slots__ = ("bytes", "of", "packed", "state")

    def __init__(self, of: weakref.ref[torch.Tensor], state: tuple[Any, ...], packed: Any, size: int) -> None:
        self.of, self.state, self.packed, self.bytes = of, state, packed, size


class _Store:
    """Packed weights by the identity of their tensors, the least recently used first.

    :ivar limit: their bytes in all, at most; 0 if nothing is to be packed.
    """

    def __init__(self) -> None:
        self.limit = self.bytes = 0
        self.kept: OrderedDict[int, _Kept] = OrderedDict()
        # An entry of a tensor that is gone is dropped by its weak reference, in whatever thread and place that happens.
        self.lock = threading.RLock()

    def set_limit(self, limit: int) -> None:
        with self.lock:
            self.limit = limit
            self._make_room(0)

    def clear(self) -> None:
        with self.lock:
            self.kept.clear()
            self.bytes = 0

    def packed(self, weight: torch.Tensor, dispatcher: Dispatcher) -> Any:
        """The packed weight; None if it is not to be packed."""
        state = weight._version, weight.data_ptr(), weight.shape, weight.stride(), weight.dtype
        with self.lock:
            kept = self.kept.get(id(weight))
            same = kept is not None and kept.state == state and kept.of() is weight
            if kept is not None and same and kept.packed is not _ONCE:
                self.kept.move_to_end(id(weight))
                return kept.packed
            self._drop(id(weight))
            if weight.numel() * weight.element_size() > self.limit:
                return None
            if not same:
                self._keep(weight, state, _ONCE, 0)
                return None
            return self._pack(weight, state, dispatcher)

    def _pack(self, weight: torch.Tensor, state: tuple[Any, ...], dispatcher: Dispatcher) -> Any:
        packed, size = None, 0
        try:
            packed = dispatcher.shuffle_b(weight.detach().t(), m=_EXPECTED_ROWS)
            size = packed.data.nbytes
        except NoKernelError as error:
            _LOG.info("a weight is not packed: %s", error)
        if size > self.limit:
            packed, size = None, 0
        self._make_room(size)
        self._keep(weight, state, packed, size)
        return packed

    def _keep(self, weight: torch.Tensor, state: tuple[Any, ...], packed: Any, size: int) -> None:
        number = id(weight)

        def gone(of: weakref.ref[torch.Tensor]) -> None:
            with self.lock:
                kept = self.kept.get(number)
                if kept is not None and kept.of is of:
                    self._drop(number)

        self.kept[number] = _Kept(weakref.ref(weight, gone), state, packed, size)
        self.bytes += size

    def _make_room(self, size: int) -> None:
        while self.kept and self.bytes + size > self.limit:
            self._drop(next(iter(self.kept)))

    def _drop(self, number: int) -> None:
        kept = self.kept.pop(number, None)
        if kept is not None:
            self.bytes -= kept.bytes


STORE = _Store()
on_change(STORE.clear)


def prepack(limit_bytes: int = 4 << 30) -> None:
    """Have :func:`linear` and adopted models keep weights on CPUs in the order that kernels read, beside the weights.

    It applies to the whole process, to calls of 8 to 1023 rows in which no gradient is recorded, and not to compiled or
    exported graphs. A weight is packed in its second such call, and again in the second one after a change in place.
    torch does not count changes of ``weight.data`` as changes of the weight: call ``prepack`` again after one. Changing
    the dispatcher in use drops all packed weights.

    :param limit_bytes: the memory that packed weights may take, in which each takes what the weight takes; those used
        least recently make room for others. 0 packs nothing and frees what is kept.
    :raises ProblemError: if the limit is no integer or negative.
    """
    if isinstance(limit_bytes, bool) or not isinstance(limit_bytes, int) or limit_bytes < 0:
        raise ProblemError(f"limit_bytes is {limit_bytes!r}; allowed: integers of 0 or more; pass 4 << 30 for 4 GiB")
    STORE.clear()
    STORE.set_limit(limit_bytes)


def prepacked() -> Prepacked:
    """What :func:`prepack` keeps now."""
    with STORE.lock:
        return Prepacked(sum(one.bytes > 0 for one in STORE.kept.values()), STORE.bytes, STORE.limit)


def linear(x: Any, weight: Any, bias: Any, activation: str | None) -> torch.Tensor | None:
    """The layer's result by a packed weight; None if this call is not one for packed weights.

    Calls that are wrong in any way are none either: what is said of them does not depend on this.
    """
    if not _may_be_packed(x, weight, bias):
        return None
    k = x.shape[-1]
    rows = x.numel() // k if k else 0
    if rows not in ROWS:
        return None
    try:
        in_use = dispatchers.find("", x.device)
        packed = STORE.packed(weight, in_use) if in_use.device.kind == "cpu" else None  # not a simulated GPU's
        if packed is None:
            return None
        a = x.detach().reshape(rows, k)
        out = a.new_empty((rows, weight.shape[0]))
        ds = () if bias is None else (bias.detach(),)
        in_use.gemm(a, packed, out=out, ds=ds, activation=activation or "none")  # type: ignore[arg-type]
    except (NoKernelError, dispatchers.DispatcherNotFoundError):
        return None
    return out.view(*x.shape[:-1], weight.shape[0])


def _may_be_packed(x: Any, weight: Any, bias: Any) -> bool:
    operands = (x, weight) if bias is None else (x, weight, bias)
    if any(type(one) not in (torch.Tensor, torch.nn.Parameter) or one.device.type != "cpu" for one in operands):
        return False
    if torch.is_grad_enabled() and any(one.requires_grad for one in operands):
        return False
    if _autocast() or _transformed() or _modes() or _traced() or weight.is_inference():  # which counts no changes
        return False
    return bool(
        weight.dtype in _DTYPES and all(one.dtype == weight.dtype and one.layout == torch.strided for one in operands)
        and weight.dim() == 2 and x.dim() >= 2 and x.shape[-1] == weight.shape[1]
        and (bias is None or bias.shape == weight.shape[:1])
    )  # fmt: skip
