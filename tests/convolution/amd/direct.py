"""Convolution kernels launched straight from a code object, with kernelwright/hip/convolution/arguments.h."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from convolution import reference
from convolution.reference import Shape
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run.launch import Buffer, Simulator
from kernelwright.simulator.run.report import LaunchReport

_ARGUMENTS = struct.Struct("<6Q4i18i2i6iif")
"""kw_hip_conv_arguments."""

_GUARD = 512
DTYPES: Mapping[str, np.dtype] = {
    "fp32": np.dtype(np.float32),
    "fp16": np.dtype(np.float16),
    "bf16": np.dtype(ml_dtypes.bfloat16),
}


@dataclass(frozen=True)
class Built:
    """A compiled kernel: where it is, and what its launch depends on."""

    image: bytes
    function: str
    tile: tuple[int, int]
    block: int
    direction: str
    dtype: str
    sum: str = ""


def guarded(shape: tuple[int, ...], dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """An array of NaN between guards of the same, and all of its memory."""
    count = math.prod(shape)
    memory = np.full(count + 2 * _GUARD, np.nan, dtype)
    return memory[_GUARD : _GUARD + count].reshape(shape), memory


def run(built: Built, shape: Shape, *, shares: int = 1, checks: Checks = Checks(), seed: int = 0) -> LaunchReport:  # noqa: B008
    """Compute with small integers, whose sums are exact; AssertionError for a wrong result, Fault for a bad access."""
    dtype, rng = DTYPES[built.dtype], np.random.default_rng(seed)
    shapes = {"x": shape.x_shape, "w": shape.w_shape, "y": shape.y_shape}
    arrays = {name: guarded(each, dtype) for name, each in shapes.items()}
    names = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "yxw"}[built.direction]
    for name in names[:2]:
        arrays[name][0][...] = rng.integers(-2, 3, shapes[name]).astype(dtype)
    partial = np.full(max(1, shares * math.prod(shape.w_shape)), np.nan, np.float32)
    values = {name: array for name, (array, _) in arrays.items()}
    wanted = {
        "forward": lambda: reference.forward(shape, values["x"], values["w"]),
        "backward_data": lambda: reference.backward_data(shape, values["y"], values["w"]),
        "backward_weight": lambda: reference.backward_weight(shape, values["x"], values["y"]),
    }[built.direction]()
    addresses = [values[name].ctypes.data for name in names]
    packed = _ARGUMENTS.pack(*addresses, partial.ctypes.data, 0, 0, *_numbers(shape), shares, 1.0)
    buffers = [
        Buffer(values[name].ctypes.data, values[name].nbytes, writable=name == names[2], name=name) for name in names
    ]
    buffers.append(Buffer(partial.ctypes.data, partial.nbytes, name="workspace"))
    simulator = Simulator(checks=checks)
    block = (built.block, 1, 1)
    grid = (_workgroups(built, shape) * shares, 1, 1)
    report = simulator.launch(built.image, built.function, grid=grid, block=block, arguments=packed, buffers=buffers)
    if built.sum:
        sums = (-(-math.prod(shape.w_shape) // 256), 1, 1)
        simulator.launch(built.image, built.sum, grid=sums, block=(256, 1, 1), arguments=packed, buffers=buffers)
    result, memory = arrays[names[2]]
    np.testing.assert_array_equal(result.astype(np.float64), wanted.astype(dtype).astype(np.float64))
    assert np.isnan(memory[:_GUARD].astype(np.float32)).all() and np.isnan(memory[-_GUARD:].astype(np.float32)).all()
    return report


def _numbers(shape: Shape) -> list[int]:
    missing = 3 - len(shape.extent)
    fields: list[int] = [shape.groups, shape.n, shape.c, shape.k]
    for values, usual in (
        (shape.extent, 1),
        (shape.out, 1),
        (shape.filter, 1),
        (shape.stride, 1),
        (shape.dilation, 1),
        (shape.left, 0),
    ):
        fields += [usual] * missing + list(values)
    points = [_strides(extent, shape.groups * channels) for extent, channels in _images(shape)]
    fields += [strides[0] for strides in points]
    for strides in points:
        fields += [0] * missing + strides[1:]
    return fields


def _images(shape: Shape) -> list[tuple[tuple[int, ...], int]]:
    return [(shape.extent, shape.c), (shape.out, shape.k)]


def _strides(extent: tuple[int, ...], channels: int) -> list[int]:
    """From one image to the next, then from one point to the next along each dimension."""
    return [math.prod(extent[i:]) * channels for i in range(len(extent) + 1)]


def _workgroups(built: Built, shape: Shape) -> int:
    m, n = shape.n * math.prod(shape.out), shape.k
    if built.direction == "backward_weight":
        m, n = shape.k, math.prod(shape.filter) * shape.c
    phases = 1
    if built.direction == "backward_data":
        phases = math.prod(shape.stride)
        n = shape.c
        m = shape.n * math.prod(-(-e // s) for e, s in zip(shape.extent, shape.stride, strict=True))
    return -(-m // built.tile[0]) * -(-n // built.tile[1]) * phases * shape.groups
