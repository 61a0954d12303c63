"""A stand-in for torch if it is not installed: tensors over NumPy memory, a grad mode, versions and streams."""

# ruff: noqa: D102 - the methods are those of torch

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


class Dtype:
    """Compared by identity; shown like torch's own dtypes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return f"torch.{self.name}"


FLOAT32 = Dtype("float32")


class Tensor:
    """The part of torch.Tensor that the bindings use; ``streams`` are those it was made on and copied to."""

    def __init__(self, array: np.ndarray[Any, Any], device: Any = None, neg: bool = False) -> None:
        self.array, self.neg, self.streams = array, neg, list[int]()
        self.device = device or SimpleNamespace(type="cpu", index=None)
        self.dtype, self.layout, self.requires_grad, self._version = FLOAT32, "strided", False, 0
        self.runtime: Torch | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape
        return shape

    def data_ptr(self) -> int:
        return self.array.ctypes.data

    def stride(self) -> tuple[int, ...]:
        return tuple(step // self.array.itemsize for step in self.array.strides)

    def is_neg(self) -> bool:
        return self.neg

    def is_inference(self) -> bool:
        return False

    def untyped_storage(self) -> Any:
        return SimpleNamespace(resize_=lambda nbytes: None)

    def copy_(self, source: Tensor) -> None:
        self.array[...] = source.array
        if self.runtime is not None:
            self.streams.append(self.runtime.stream)


Tensor.__module__ = "torch"


class Torch(ModuleType):
    """The module; ``stream`` is the current one, ``grad`` the grad mode."""

    def __init__(self) -> None:
        super().__init__("torch")
        self.stream, self.grad = 0, True
        self.strided, self.float32, self.uint8 = "strided", FLOAT32, Dtype("uint8")
        self._C, self.version = SimpleNamespace(), SimpleNamespace(hip=None)
        self.autograd = SimpleNamespace(graph=SimpleNamespace(increment_version=self.increment_version))
        self.cuda = SimpleNamespace(
            current_stream=lambda device: SimpleNamespace(cuda_stream=self.stream),
            default_stream=lambda device: SimpleNamespace(cuda_stream=0),
            ExternalStream=lambda pointer, device: SimpleNamespace(cuda_stream=pointer),
            stream=self.use_stream,
        )

    def is_grad_enabled(self) -> bool:
        return self.grad

    @staticmethod
    def increment_version(tensor: Tensor) -> None:
        tensor._version += 1

    @contextmanager
    def use_stream(self, stream: Any) -> Iterator[None]:
        before, self.stream = self.stream, stream.cuda_stream
        yield
        self.stream = before

    def empty(self, shape: tuple[int, ...] | int, dtype: Dtype, device: Any) -> Tensor:
        made = Tensor(np.empty(shape, np.float32 if dtype is FLOAT32 else np.uint8), device)
        made.runtime = self
        made.streams.append(self.stream)
        return made

    def empty_like(self, tensor: Tensor) -> Tensor:
        return self.empty(tensor.shape, tensor.dtype, tensor.device)
