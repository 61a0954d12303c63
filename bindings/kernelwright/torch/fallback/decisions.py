"""Decide which problems of an operator torch computes: once per kind of problem, counted, logged once per reason.

A kind of problem comprises all that selection depends on: shapes, strides, dtypes and devices of the tensors, and all
options.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, KernelwrightError, NoKernelError
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.recording import counting
from kernelwright.torch.dispatchers import DispatcherNotFoundError, on_change
from kernelwright.torch.fallback.strictness import STRICTNESS
from torch.compiler import is_dynamo_compiling  # pants: no-infer-dep

LIMIT = 4096  # kinds that an operator remembers
PROBLEMS = 512  # problems that are kept for each reason
_LOG = logging.getLogger("kernelwright.torch")
_UNTOLD = torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_transformed = torch._C._are_functorch_transforms_active
_autocast = torch.is_autocast_enabled
_any_autocast = torch._C._is_any_autocast_enabled
_clock = perf_counter_ns


class UnservedError(ArrayError, NoKernelError):
    """Operands have a dtype or memory layout that no kernel of any library reads, though torch does."""


class NotInTorchError(Exception):
    """torch has no operator for this either. Never leaves the package."""


class Reason:
    """Why torch computes problems of an operator that differ only in numbers.

    :ivar message: the message of the first one.
    :ivar refusals: one for each of the first problems, followed by one for all others.
    """

    def __init__(self, operator: str, message: str, arch: str) -> None:
        """``arch`` is the architecture of the libraries, or empty."""
        self.operator, self.message, self.arch = operator, message, arch
        self.refusals: list[Refusal] = []

    @property
    def calls(self) -> int:
        """Number of calls that torch computed."""
        return sum(one.calls for one in self.refusals)

    @property
    def host_ns(self) -> int:
        """Host time of these calls."""
        return sum(one.host_ns for one in self.refusals)


class Refusal:
    """A kind of problem that torch computes.

    :ivar problem: the dispatcher's problem, or None for operands without one.
    """

    __slots__ = ("arch", "calls", "host_ns", "problem")

    def __init__(self, problem: Any, arch: str) -> None:
        """Start with no calls computed."""
        self.problem, self.arch = problem, arch
        self.calls = self.host_ns = 0

    def run(self, torchs: Callable[..., Any], given: Sequence[Any]) -> Any:
        """Return ``torchs(*given)`` and count the call."""
        start = _clock()
        result = torchs(*given)
        self.calls += 1
        self.host_ns += _clock() - start
        if self.problem is not None and self.calls > 1 and counting.active() is not None:
            counting.refused(self.problem, self.arch)  # the dispatcher has counted the first one
        return result


class _Thread(threading.local):
    direct = False


THREAD = _Thread()
"""``direct``: whether a public function has called the operator and will send unserved problems to torch."""


class Decisions:
    """Decisions for one operator.

    :ivar ours: number of calls that kernels computed; ``ours_ns`` is their time on the host.
    :ivar refused: kinds that torch computes, by :func:`kind`.
    """

    def __init__(self, operator: str) -> None:
        """``operator`` is the operator's name in torch's namespace ``kernelwright``."""
        self.operator = operator
        self.ours = self.ours_ns = 0
        self.any = False
        self.refused: Cache[Any, Refusal] = Cache(LIMIT)
        self.reasons: dict[str, Reason] = {}
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Forget the decisions: other dispatchers are in use."""
        self.any = False
        self.refused.clear()

    def reset(self) -> None:
        """Forget decisions and counts."""
        self.forget()
        self.ours = self.ours_ns = 0
        self.reasons = {}

    def call(self, ours: Callable[..., Any], torchs: Callable[..., Any], given: tuple[Any, ...], tensors: int) -> Any:
        """Return ``ours(*given)``, or ``torchs(*given)`` if no kernel serves it. For public functions.

        While a graph is traced, the operator itself becomes part of it and decides at each call: :meth:`below`.
        """
        if is_dynamo_compiling():
            return ours(*given)
        if self.any and not STRICTNESS.on:
            known = self.refused.get(kind(given, tensors))
            if known is not None:
                return known.run(torchs, given)
        THREAD.direct = True
        try:
            return ours(*given)
        except (NoKernelError, DispatcherNotFoundError, NotImplementedError) as error:
            if not isinstance(error, KernelwrightError):
                raise
            refused = error
        finally:
            THREAD.direct = False
        return self._first(refused, torchs, given, kind(given, tensors))

    def below(self, ours: Callable[..., Any], torchs: Callable[..., Any], given: tuple[Any, ...]) -> Any:
        """:meth:`call` below autograd, in the operator: for compiled and exported graphs, and backward passes."""
        if self.any and not THREAD.direct and not STRICTNESS.on:
            known = self.refused.get(kind_below(given))
            if known is not None:
                return known.run(torchs, given)
        start = _clock()
        try:
            result = ours(*given)
        except (NoKernelError, DispatcherNotFoundError) as error:
            if THREAD.direct:
                raise
            refused = error
        else:
            self.ours += 1
            self.ours_ns += _clock() - start
            return result
        return self._first(refused, torchs, given, kind_below(given))

    def _first(self, error: KernelwrightError, torchs: Callable[..., Any], given: tuple[Any, ...], key: Any) -> Any:
        """Decide that torch computes problems like this one and run it. Raises ``error`` if torch may not."""
        if STRICTNESS.on or (isinstance(error, DispatcherNotFoundError) and error.name) or _quantised(given[0]):
            raise error
        planned = isinstance(error, NoKernelError) and not isinstance(error, UnservedError)
        problem, arch = counting.last_refused() if planned else (None, "")
        refusal = Refusal(problem, arch)
        try:
            result = refusal.run(torchs, given)
        except torch.OutOfMemoryError:
            raise
        except NotInTorchError as torchs_error:
            raise error from torchs_error
        except (RuntimeError, TypeError, ValueError) as torchs_error:
            if isinstance(error, UnservedError):  # torch cannot compute it either: our error says what to do
                raise error from torchs_error
            raise
        if isinstance(error, NotImplementedError):  # transforms are not part of a kind
            key = None
        with self._lock:
            reason = self._reason(error.reason if isinstance(error, NoKernelError) else str(error), arch)
            if len(reason.refusals) < PROBLEMS:
                reason.refusals.append(refusal)
            else:
                refusal, last = reason.refusals[-1], refusal
                refusal.calls, refusal.host_ns = refusal.calls + last.calls, refusal.host_ns + last.host_ns
                refusal.problem = None
            if key is not None:
                with contextlib.suppress(TypeError):  # unhashable options are decided at each call
                    self.refused.put(key, refusal)
                    self.any = True
        return result

    def _reason(self, message: str, arch: str) -> Reason:
        """The reason with this message, which is logged once, whatever its numbers."""
        pattern = re.sub(r"\b[\dx*]+\b|<[^>]*>", "#", message.partition("(selection")[0])
        reason = self.reasons.get(pattern)
        if reason is None:
            reason = self.reasons[pattern] = Reason(self.operator, message, arch)
            _LOG.warning("kernelwright::%s runs torch's own operator: %s%s", self.operator, message, advice(arch))
        return reason


def _quantised(one: Any) -> bool:
    """Whether the argument has 8-bit numbers, whose products are wider: torch has no such operator."""
    return isinstance(one, torch.Tensor) and one.element_size() == 1 and one.dtype not in (torch.bool, torch.uint8)


def advice(arch: str) -> str:
    """The line that adds kernels for the refused problems, if libraries of an architecture are in use."""
    if not arch:
        return ""
    return (
        '; to add the kernel, call kernelwright.torch.report().save("unserved.json") and build kernel_set('
        f'name="more", problems="unserved.json", archs=["{arch}"])'
    )


def kind(given: tuple[Any, ...], tensors: int) -> tuple[Any, ...] | None:
    """All that selection depends on; None if that is unknown, so that each call is decided separately.

    :param tensors: number of leading arguments that are tensors, lists of tensors or None. All are on the device of the
        first one.
    """
    if _transformed():
        return None
    try:
        operands = [
            (one.shape, one.stride(), one.dtype) if type(one) is _Tensor else None if one is None else _signature(one)
            for one in given[:tensors]
        ]
        return tuple(operands), given[tensors:], given[0].device, _any_autocast() and _regions()
    except (_UntoldError, AttributeError, RuntimeError):  # not a tensor, or one without strides
        return None


def kind_below(given: Sequence[Any]) -> tuple[Any, ...] | None:
    """:func:`kind` of arguments as torch passes them to an operator: tensors anywhere, numbers in lists."""
    if _transformed():
        return None
    try:
        return tuple([_signature(one) for one in given]), given[0].device
    except (_UntoldError, AttributeError, RuntimeError):
        return None


class _UntoldError(Exception):
    """The argument is one whose calls cannot be classified."""


def _signature(one: Any) -> Any:
    """All that selection depends on. _UntoldError for tensor subclasses and symbols."""
    cls = type(one)
    if cls is _Tensor or cls is _Parameter:
        return one.shape, one.stride(), one.dtype
    if cls is list or cls is tuple:
        return tuple([_signature(each) for each in one])
    if isinstance(one, _UNTOLD):
        raise _UntoldError
    return one


def _regions() -> tuple[Any, ...]:
    """Autocast regions active in this thread."""
    return tuple(torch.get_autocast_dtype(device) if _autocast(device) else None for device in ("cpu", "cuda"))


OPERATORS: dict[str, Decisions] = {}
"""Decisions by operator name."""


def of(operator: str) -> Decisions:
    """The decisions of an operator."""
    return OPERATORS.setdefault(operator, Decisions(operator))


def _forget() -> None:
    for one in OPERATORS.values():
        one.forget()


on_change(_forget)
