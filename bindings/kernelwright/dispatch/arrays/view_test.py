from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import ArrayError
from kernelwright.dispatch.arrays import allocate, dlpack, dtypes, guards
from kernelwright.dispatch.arrays.view import view
from kernelwright.dispatch.core import device, workspace
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.testdata import mocks


class Cuda:
    """Offers only __cuda_array_interface__."""

    def __init__(self, **interface: Any) -> None:
        self.__cuda_array_interface__ = {"data": (4096, False), "version": 3, **interface}


class Dtype:
    def __init__(self, name: str) -> None:
        self.text = name

    def __str__(self) -> str:
        return self.text


def torch_module(hip: str | None = None) -> ModuleType:
    module = ModuleType("torch")
    streams: list[Any] = [None]

    @contextmanager
    def use(stream: Any) -> Iterator[None]:
        streams.append(stream)
        yield
        streams.pop()

    def empty(shape: Any, dtype: Any, device: Any) -> Tensor:
        made = Tensor(shape if isinstance(shape, tuple) else (shape,), dtype, device)
        made.stream = streams[-1]
        return made

    module.__dict__.update(
        strided="strided",
        _C=SimpleNamespace(),
        version=SimpleNamespace(hip=hip),
        float32=Dtype("torch.float32"),
        bfloat16=Dtype("torch.bfloat16"),
        uint8=Dtype("torch.uint8"),
        cuda=SimpleNamespace(
            current_stream=lambda device: SimpleNamespace(cuda_stream=77),
            default_stream=lambda device: (device, 0),
            ExternalStream=lambda address, device: (device, address),
            stream=use,
        ),
        empty=empty,
        empty_like=lambda tensor: empty(tensor.shape, tensor.dtype, tensor.device),
    )
    return module


class Tensor:
    """The part of torch.Tensor that a view needs."""

    def __init__(self, shape: tuple[int, ...], dtype: Any, device: Any, layout: str = "strided") -> None:
        self.shape, self.dtype, self.layout = shape, dtype, layout
        self.device = device if not isinstance(device, str) else SimpleNamespace(type="cuda", index=0)
        self.steps: tuple[int, ...] = (shape[-1], 1)
        self.stream: Any = None
        self.requires_grad = False
        self.nbytes = 1  # of memory

    def untyped_storage(self) -> Any:
        return SimpleNamespace(resize_=partial(setattr, self, "nbytes"))

    def is_neg(self) -> bool:
        return False

    def data_ptr(self) -> int:
        return 4100

    def stride(self) -> tuple[int, ...]:
        return self.steps

    def t(self) -> Tensor:
        turned = Tensor(self.shape[::-1], self.dtype, self.device)
        turned.steps = self.steps[::-1]
        return turned


Tensor.__module__ = "torch"


def test_numpy_is_viewed_without_a_copy() -> None:
    array = np.zeros((3, 4), ml_dtypes.bfloat16)
    viewed = view(array.T)
    assert viewed.pointer == array.ctypes.data
    assert (viewed.shape, viewed.strides, viewed.dtype, viewed.device) == ((4, 3), (1, 4), "bf16", "cpu")
    assert not view(array).fnuz
    assert view(np.zeros((1, 1), ml_dtypes.float8_e4m3fnuz)).fnuz
    frozen = np.zeros((2, 2), np.float32)
    frozen.flags.writeable = False
    assert view(frozen).readonly


@pytest.mark.parametrize(
    ("array", "word"),
    [
        (np.zeros((2, 2)), "float64"),
        (np.zeros((2, 2), ">f4"), "byte order"),
        (np.zeros((2, 2), "i1,f4")["f1"], "strides of"),
        (np.frombuffer(bytes(17), np.uint8)[1:].view(np.float32).reshape(2, 2), "not aligned"),
        ([[1.0]], "is a list"),
        (mocks.Foreign(np.zeros((2, 2), np.float64)), "code 2, 64 bits"),
        (Cuda(shape=(2, 2), typestr="<f8", strides=None), "float64"),
        (np.ma.masked_array(np.zeros((2, 2), np.float32), False), "a is a masked array"),
        (Cuda(shape=(2, 2), typestr="<f4", strides=None, mask=Cuda(shape=(2, 2), typestr="|b1")), "a has a mask"),
        (Cuda(shape=(2, 2), typestr=">f4", strides=None), "byte order"),
    ],
)
def test_what_no_kernel_can_read_is_refused(array: Any, word: str) -> None:
    with pytest.raises(ArrayError, match=word):
        view(array, "a")


def test_dlpack_is_viewed_without_a_copy() -> None:
    array = np.zeros((3, 8), np.float16)[:, 2:6]
    viewed = view(mocks.Foreign(array))
    assert viewed.pointer == array.ctypes.data
    assert (viewed.shape, viewed.strides, viewed.dtype, viewed.device) == ((3, 4), (8, 1), "fp16", "cpu")


def test_dlpack_refuses_unknown_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dlpack, "_HOST", frozenset())
    with pytest.raises(ArrayError, match="device type 1"):
        dlpack.view(mocks.Foreign(np.zeros((2, 2), np.float32)))


def test_cuda_array_interface() -> None:
    viewed = view(Cuda(shape=(3, 4), typestr="<f2", strides=None))
    assert (viewed.pointer, viewed.strides, viewed.dtype, viewed.device) == (4096, (4, 1), "fp16", "cuda:0")
    assert view(Cuda(shape=(3, 4), typestr="<f4", strides=(4, 12))).strides == (1, 3)


@pytest.mark.parametrize(("hip", "device"), [(None, "cuda:0"), ("6.4", "hip:0")])
def test_torch_tensors(monkeypatch: pytest.MonkeyPatch, hip: str | None, device: str) -> None:
    monkeypatch.setitem(sys.modules, "torch", torch_module(hip))
    where = SimpleNamespace(type="cuda", index=0)
    tensor = Tensor((3, 4), Dtype("torch.bfloat16"), where)
    viewed = view(tensor)
    assert (viewed.pointer, viewed.strides, viewed.dtype, viewed.device) == (4100, (4, 1), "bf16", device)
    made = allocate.allocator("torch", (3, 5), "fp32", tensor)()
    assert (made.shape, made.stride(), str(made.dtype), made.nbytes) == ((3, 5), (5, 1), "torch.float32", 1)
    for stream in (0, 1, 2, 77):
        pointer, owner = workspace.allocate(100, "torch", device, stream)
        assert pointer % 256 == 0 and pointer >= 4100
        # The current stream, 77, needs no switch.
        assert owner.stream == (None if stream == 77 else ("cuda:0", 0 if stream == 1 else stream))
    source = workspace.stream_source("torch", device)
    assert source is not None and source() == 77
    monkeypatch.setattr(sys.modules["torch"]._C, "_cuda_getCurrentRawStream", lambda index: 88 + index, raising=False)
    source = workspace.stream_source("torch", device)
    assert source is not None and source() == 88
    same = guards.attribute_guard(tensor)
    assert same(Tensor((3, 4), tensor.dtype, where)) and not same(tensor.t()) and not same(np.zeros((3, 4)))
    assert view(Tensor((3, 4), Dtype("torch.float32"), SimpleNamespace(type="cpu", index=None))).device == "cpu"
    with pytest.raises(ArrayError, match="sparse"):
        view(Tensor((3, 4), Dtype("torch.float32"), where, layout="sparse"))


class CupyDevice:
    """A device of the stand-in CuPy: a context manager that makes itself current."""

    current = 0

    def __init__(self, id: int) -> None:
        self.id, self.before = id, 0

    def __enter__(self) -> None:
        self.before, CupyDevice.current = CupyDevice.current, self.id

    def __exit__(self, *error: object) -> None:
        CupyDevice.current = self.before


def test_cupy_allocates_on_the_device_of_its_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    def empty(shape: object, dtype: object) -> SimpleNamespace:
        return SimpleNamespace(shape=shape, data=SimpleNamespace(ptr=1), device=CupyDevice(CupyDevice.current))

    module = ModuleType("cupy")
    streams = [SimpleNamespace(ptr=5), SimpleNamespace(ptr=6)]
    used: list[tuple[int, int]] = []

    def external(stream: int, ordinal: int) -> nullcontext[None]:
        used.append((stream, ordinal))
        return nullcontext()

    cuda = SimpleNamespace(
        Device=CupyDevice, get_current_stream=streams.__getitem__, ExternalStream=external,
        Stream=SimpleNamespace(null=nullcontext()),
    )  # fmt: skip
    module.__dict__.update(empty=empty, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", module)
    for ordinal in (0, 1):
        made = allocate.allocator("cupy", (2, 3), "fp16", SimpleNamespace(device=CupyDevice(ordinal)))()
        assert made.shape == (2, 3) and made.device.id == ordinal
        address, owner = workspace.allocate(1, "cupy", f"cuda:{ordinal}", 5 * ordinal)
        assert address == 256 and owner.device.id == ordinal and used == [(5, 1)] * ordinal
        source = workspace.stream_source("cupy", f"cuda:{ordinal}")
        assert source is not None and source() == 5 + ordinal
    assert CupyDevice.current == 0


class Driver:
    """A stand-in CUDA driver: device 0 owns the first 64 KiB, device 1 the next; then pinned and managed memory."""

    asked = 0
    status = 0

    def cuPointerGetAttribute(self, output: Any, attribute: int, pointer: ctypes.c_uint64) -> int:
        Driver.asked += 1
        block = pointer.value >> 16
        if block > 3 or (attribute == 9 and block > 1) or self.status:
            return self.status or 1
        output._obj.value = {2: (2, 2, 1, 2)[block], 8: int(block == 3), 9: block}[attribute]
        return 0


def test_the_address_tells_the_cuda_device(monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(pointer: int) -> Any:
        return SimpleNamespace(
            __cuda_array_interface__={"typestr": "<f2", "shape": (2, 3), "data": (pointer, False), "version": 3}
        )

    monkeypatch.setattr(device, "_cuda_driver", Driver)
    assert [view(shown(at)).device for at in (4096, 1 << 16, 1 << 20, 0)] == ["cuda:0", "cuda:1", "cuda:0", "cuda:0"]
    workspace.check_device(4096, "cuda:0")
    workspace.check_device(1 << 20, "cuda:1")  # not known to CUDA
    with pytest.raises(ArrayError, match="workspace is on cuda:0; allowed for this plan: cuda:1"):
        workspace.check_device(4096, "cuda:1")
    monkeypatch.setattr(device, "_cuda_driver", lambda: None)
    assert view(shown(1 << 16)).device == "cuda:0"


def test_addresses_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_cuda_driver", Driver)
    places = [device.cuda_place(block << 16 | 64) for block in (0, 1, 2, 3, 4)]
    assert places == ["cuda:0", "cuda:1", "host memory", "managed memory", "host memory"]
    here, there, pinned, managed, unknown = (Region(block << 16 | 64, 8, False, "A") for block in range(5))
    workspace.check_addresses([there, managed, Region(0, 8, False, "B"), Region(1 << 18, 0, True, "C")], "cuda:1")
    for refused, place in ((here, "memory of cuda:0"), (pinned, "host memory"), (unknown, "host memory")):
        allowed = "allowed for this plan: memory of cuda:1; KERNELWRIGHT_ADDRESS_CHECK=off takes any address"
        with pytest.raises(ArrayError, match=f"A is at {refused.address:#x}, in {place}; {allowed}"):
            workspace.check_addresses([there, refused], "cuda:1")
    workspace.check_addresses([pinned], "cpu")
    workspace.check_addresses([pinned], "hip:0")
    monkeypatch.setenv("KERNELWRIGHT_ADDRESS_CHECK", "off")
    workspace.check_addresses([here, pinned], "cuda:1")
    monkeypatch.delenv("KERNELWRIGHT_ADDRESS_CHECK")
    monkeypatch.setattr(Driver, "status", 3)  # not initialised
    workspace.check_addresses([here, pinned], "cuda:1")
    monkeypatch.setattr(device, "_cuda_driver", lambda: None)
    workspace.check_addresses([here, pinned], "cuda:1")


def test_results_are_allocated_like_their_operands() -> None:
    a = np.zeros((2, 2), ml_dtypes.bfloat16)
    assert allocate.allocator("numpy", (2, 3), "bf16", a)().dtype == ml_dtypes.bfloat16
    assert allocate.allocator("numpy", (2, 3), "fp32", a)().dtype == np.float32
    assert allocate.allocator("numpy", (2, 3), "fp8", a, fnuz=True)().dtype == ml_dtypes.float8_e4m3fnuz
    with pytest.raises(ArrayError, match="cannot allocate a result beside a jax array; pass out="):
        allocate.allocator("jax", (2, 2), "fp16", None)
    with pytest.raises(ArrayError, match="pass workspace="):
        workspace.allocate(1, "jax", "cuda:0", 0)
    assert workspace.stream_source("jax", "cuda:0") is None


def test_dtypes_round_trip() -> None:
    for name in dtypes.CODES:
        assert dtypes.name_of(dtypes.numpy_dtype(name)) == (name, False)
        assert dtypes.numpy_dtype(name).itemsize == dtypes.ITEMSIZE[name]
    assert dtypes.name_of(dtypes.numpy_dtype("bf8", fnuz=True)) == ("bf8", True)
    # 8-bit operands of one format have results of wider types.
    assert dtypes.name_of(dtypes.numpy_dtype("bf16", fnuz=True)) == ("bf16", False)


def test_ml_dtypes_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    assert dtypes.numpy_dtype("fp16") == np.float16
    with pytest.raises(ArrayError, match="install ml_dtypes"):
        dtypes.numpy_dtype("bf16")
