"""The native road of eager calls: operators in C++ that launch known plans, with no Python between torch and a kernel.

The native dispatcher registers them through LibTorch's stable C ABI (torch 2.10 or newer; ``dispatcher/torch/shim.h``).
The first call of a kind takes the Python road, with all checks, and teaches the plan to the native road, which from
then on looks it up by shapes, strides, dtypes and devices of the tensors and a number for all options. Calls under
autocast, transforms, modes and tracers take the Python road, whose operators support them. The road of a process is
decided once; :func:`report` states it.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from collections.abc import Hashable, Sequence
from ctypes import c_int32, c_uint32, c_uint64, c_void_p
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import Dispatcher, KernelwrightError
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.plan import OperationPlan
from kernelwright.dispatch.recording import counting
from kernelwright.torch.dispatchers import on_change
from torch.autograd import forward_ad  # pants: no-infer-dep

ENVIRONMENT = "KERNELWRIGHT_TORCH_ROAD"
OLDEST = (2, 10)

# In the order of kw_torch_shim.
SHIM = (
    *("aoti_torch_library_init_impl", "torch_library_impl", "aoti_torch_get_dim", "aoti_torch_get_sizes"),
    *("aoti_torch_get_strides", "aoti_torch_get_dtype", "aoti_torch_get_device_type", "aoti_torch_get_device_index"),
    *("torch_get_const_data_ptr", "torch_get_mutable_data_ptr", "aoti_torch_empty_strided"),
    *("aoti_torch_new_uninitialized_tensor", "aoti_torch_delete_tensor_object", "aoti_torch_dtype_uint8"),
    "aoti_torch_device_type_cpu",
)
_STREAM = "aoti_torch_get_current_cuda_stream"  # after them; in the library for GPUs
_TENSORS, _RESULTS, _ARGS_BYTES = 6, 3, 768  # limits of dispatcher/torch/call.h
_COUNTS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_OPTIONS = 4096  # option sets that a function remembers

_transformed = torch._C._are_functorch_transforms_active
_autocast = torch._C._is_any_autocast_enabled
_modes = torch._C._len_torch_dispatch_stack
_traced = torch._C._is_tracing


class _Known(ctypes.Structure):
    """``kw_torch_known``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("plan", c_void_p),
        ("workspace_bytes", c_uint64),
        ("args", c_void_p),
        ("args_bytes", c_uint32),
        ("counter", c_uint32),
        ("results", c_uint32),
        ("offsets", c_uint32 * _TENSORS),
        ("result_offsets", c_uint32 * _RESULTS),
    ]


class Road:
    """The road of one process.

    :ivar generation: number of times that it has forgotten its plans.
    :ivar why_not: why calls take the Python road; empty if there is a native one.
    :ivar functions: the public functions that try the native road.
    """

    def __init__(self) -> None:
        """Decide on the road."""
        self._library: Any = None
        self._registered: Any = None
        self._plans: list[OperationPlan[Any]] = []  # must outlive C++ launches
        self._counters: dict[str, int] = {}
        self._lock = threading.Lock()
        self.generation = 0
        self.functions: set[str] = set()
        self.why_not = self._open()
        if not self.why_not:
            on_change(self.forget)
            counting.note(self)  # recorders count plans' own calls

    @property
    def name(self) -> str:
        """``native``, or ``python`` with the reason."""
        return f"python: {self.why_not}" if self.why_not else "native"

    def _open(self) -> str:
        word = os.environ.get(ENVIRONMENT, "native")
        if word not in ("native", "python"):
            raise KernelwrightError(f"{ENVIRONMENT} is {word!r}; allowed: native, python; unset it for the former")
        if word == "python":
            return f"{ENVIRONMENT}=python"
        version = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
        if version is None or (int(version[1]), int(version[2])) < OLDEST:
            return f"torch {torch.__version__} is older than {'.'.join(map(str, OLDEST))}"
        try:
            functions = _shim()
            library = native.library()
            definitions = torch.library.Library("kernelwright", "FRAGMENT")
            for schema in _schemas():
                definitions.define(schema)  # public functions record gradients themselves
                definitions.impl(schema.partition("(")[0], torch.library.fallthrough_kernel, "Autograd")
            native.check(library.kw_torch_use(functions))
        except (OSError, AttributeError, KernelwrightError) as error:
            return str(error)
        self._library, self._registered = library, definitions
        os.register_at_fork(after_in_child=self._after_fork)
        return ""

    def _after_fork(self) -> None:
        self._lock = threading.Lock()  # its owner may be a thread of the parent
        self._library.kw_torch_after_fork()

    def counted(self, operator: str, reset: bool = False) -> tuple[int, int]:
        """Number of an operator's calls that took the native road, and their nanoseconds on the host."""
        if self._library is None or operator not in self._counters:
            return 0, 0
        tally = self._library.kw_torch_counted(self._counters[operator], int(reset))
        return tally.calls, tally.host_ns

    def forget(self) -> None:
        """Have every kind of call take the Python road once more, with the dispatchers then in use."""
        if self._library is not None:
            with self._lock:
                self.generation += 1
                self._library.kw_torch_forget()
                self._plans.clear()

    forget_calls = forget

    def learn(
        self, tensors: Sequence[torch.Tensor], options: int, results: Sequence[torch.Tensor], operator: str,
        generation: int, dispatcher: Dispatcher, plan: OperationPlan[Any], places: tuple[list[int], list[int]],
    ) -> bool:  # fmt: skip
        """Remember that ``plan`` computes ``results`` from ``tensors``; False if it cannot be launched from C++.

        :param generation: :attr:`generation` before the plan was looked up.
        :param places: byte offsets of the addresses of tensors, and of results, in the argument struct.
        """
        foreign = plan.foreign
        if foreign is None or counting.active() is not None or ctypes.sizeof(foreign[2]) > _ARGS_BYTES:
            return False
        handle, ordinal, args = foreign
        known = _Known(
            ctypes.sizeof(_Known), ordinal, handle, plan.workspace_bytes, ctypes.addressof(args), ctypes.sizeof(args),
            self._counters.setdefault(operator, len(self._counters)), len(results),
            (c_uint32 * _TENSORS)(*places[0]), (c_uint32 * _RESULTS)(*places[1]),
        )  # fmt: skip
        given = *tensors, *results
        learn = getattr(torch.ops.kernelwright, f"learn_{_COUNTS[len(given)]}").default
        dispatcher._core.on_clear(self.forget)
        with self._lock:
            if generation != self.generation:
                return False
            self._plans.append(plan)
            return bool(learn(*given, options, ctypes.addressof(known)))


def _schemas() -> list[str]:
    """The operators of dispatcher/torch/call.h."""

    def tensors(count: int) -> str:
        return ", ".join(f"Tensor {letter}" for letter in "abcdefghi"[:count])

    return [
        *(f"launch_{_COUNTS[count]}({tensors(count)}, int options) -> Tensor" for count in range(2, 7)),
        *(f"pair_{_COUNTS[count]}({tensors(count)}, int options) -> (Tensor, Tensor)" for count in (3, 4)),
        f"triple_six({tensors(6)}, int options) -> (Tensor, Tensor, Tensor)",
        *(f"learn_{_COUNTS[count]}({tensors(count)}, int options, int known) -> int" for count in (*range(3, 8), 9)),
    ]


def _shim() -> ctypes.Array[Any]:
    """The shim functions of the loaded torch. OSError or AttributeError if one is missing."""
    folder = os.path.join(os.path.dirname(torch.__file__), "lib")
    mode = os.RTLD_NOLOAD | os.RTLD_NOW
    cpu = ctypes.CDLL(os.path.join(folder, "libtorch_cpu.so"), mode)
    addresses = [ctypes.cast(getattr(cpu, name), c_void_p).value for name in SHIM]
    stream = None
    for name in ("libtorch_cuda.so", "libtorch_hip.so"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            stream = ctypes.cast(getattr(ctypes.CDLL(path, mode), _STREAM), c_void_p).value
    return (c_void_p * (len(SHIM) + 1))(*addresses, stream)


def ordinary() -> bool:
    """Whether no mode, autocast region, transform, tangent or tracer sees this call."""
    return not (_modes() or _autocast() or _transformed() or forward_ad._current_level >= 0 or _traced())


ROAD = Road()
if ROAD.why_not:

    def launch(kinds: dict[Any, int], option: Hashable, a: Any, b: Any, c: Any = None) -> Any:
        """Return None: there is no native road."""
        return None

    def launch_all(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """Return None: there is no native road."""
        return None

    def launch_pair(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """Return None: there is no native road."""
        return None

    def launch_triple(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """Return None: there is no native road."""
        return None

else:
    _two = torch.ops.kernelwright.launch_two.default
    _three = torch.ops.kernelwright.launch_three.default
    _triple = torch.ops.kernelwright.triple_six.default
    _all, _pairs = (
        [getattr(torch.ops.kernelwright, f"{verb}_{_COUNTS[count]}").default for count in counts]
        for verb, counts in (("launch", range(2, 7)), ("pair", (3, 4)))
    )

    def launch(kinds: dict[Any, int], option: Hashable, a: Any, b: Any, c: Any = None) -> Any:
        """Return the result of a known plan, without a gradient; None if the Python road must be taken.

        :param kinds: numbers by option set.
        """
        if _modes() or _autocast() or _transformed() or forward_ad._current_level >= 0 or _traced():
            return None
        try:
            return _two(a, b, kinds[option]) if c is None else _three(a, b, c, kinds[option])
        except (RuntimeError, TypeError, LookupError):  # the Python road reports the error
            return None

    def launch_all(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """:func:`launch` with two to six tensors."""
        if _modes() or _autocast() or _transformed() or forward_ad._current_level >= 0 or _traced():
            return None
        try:
            return _all[len(tensors) - 2](*tensors, kinds[option])
        except (RuntimeError, TypeError, LookupError):
            return None

    def launch_pair(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """:func:`launch` with three or four tensors, for plans with two results; returns both, or None."""
        return _several(_pairs[len(tensors) - 3], kinds, option, tensors)

    def launch_triple(kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        """:func:`launch` with six tensors, for plans with three results; returns all, or None."""
        return _several(_triple, kinds, option, tensors)

    def _several(operator: Any, kinds: dict[Any, int], option: Hashable, tensors: Sequence[Any]) -> Any:
        if _modes() or _autocast() or _transformed() or forward_ad._current_level >= 0 or _traced():
            return None
        try:
            results = operator(*tensors, kinds[option])
        except (RuntimeError, TypeError, LookupError):
            return None
        return None if results[0] is None else results


_numbers = iter(range(1, 1 << 62))
_numbers_lock = threading.Lock()


def number(kinds: dict[Any, int], option: Hashable) -> int | None:
    """The number that stands for a set of options in the whole process; None if there are too many."""
    with _numbers_lock:
        if option not in kinds and len(kinds) < _OPTIONS:
            kinds[option] = next(_numbers)
        return kinds.get(option)
