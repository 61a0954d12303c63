"""Convolution as the tile engine measures it: forward and both gradients, in two and three dimensions."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import ConvPlan, ConvProblem, OperationPlan, ProblemError, dtypes
from kernelwright.tile_engine.learning.convolution import ConvolutionLearning
from kernelwright.tile_engine.operation import Measurable, Operands, Record
from kernelwright.tile_engine.operations.convolution.words import WORDS
from kernelwright.tile_engine.problems.convolution import CONV_SETS, conv_origins, layer_of

_ALONG = tuple(f"{word}_{axis}" for word in ("stride", "pad", "dilation") for axis in "dhw")
_DEFAULTS: dict[str, Any] = {
    **{"direction": "forward", "g": 1, "di": 1, "z": 1, "dtype": "fp32"},
    **{name: 0 if name.startswith("pad") else 1 for name in _ALONG},
}
_ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8}
_ALL_CHECKED = 1 << 30  # multiplications; of larger problems, some images or some output channels are compared
_KEPT = 1 << 24  # elements of exact results
_LARGEST = 2  # of operands: sums of up to 2**22 products are exact in fp32


class Convolution(Measurable):
    """See :class:`kernelwright.tile_engine.operation.Measurable`. Columns are those of the CK Tile engine's tables."""

    name = "convolution"
    problem_sets, words = CONV_SETS, WORDS
    columns: Sequence[str] = (
        *("direction", "n", "c", "k", "g", "di", "hi", "wi", "z", "y", "x"),
        *(*_ALONG, "dtype"),
    )

    def __init__(self) -> None:
        self.learning = ConvolutionLearning(self.problem)

    def read(self, record: Record) -> Record:
        """Keys are the columns, in any case; n, c, k, hi, wi, y and x have no default. di and z are 1 in 2D."""
        given = {key.lower(): value for key, value in record.items()}
        if unknown := sorted(set(given) - set(self.columns)):
            raise ValueError(f"a convolution has unknown keys {unknown}; allowed: {', '.join(self.columns)}")
        if missing := [key for key in ("n", "c", "k", "hi", "wi", "y", "x") if key not in given]:
            raise ValueError(f"a convolution lacks {', '.join(missing)}: {dict(record)!r}")
        whole = {**_DEFAULTS, **given}
        try:
            self.problem(whole)
        except (ProblemError, TypeError) as error:
            raise ValueError(f"{dict(record)!r}: {error}") from None
        return {key: whole[key] for key in self.columns}

    def problem(self, record: Record) -> ConvProblem:
        """The problem of dense tensors with channels innermost."""
        deep = record["di"] != 1 or record["z"] != 1
        axes = "dhw" if deep else "hw"
        along = {word: tuple(record[f"{word}_{axis}"] for axis in axes) for word in ("stride", "pad", "dilation")}
        sizes = (record["di"], record["hi"], record["wi"])[-len(axes) :]
        points = (record["z"], record["y"], record["x"])[-len(axes) :]
        return ConvProblem(
            record["direction"], record["n"], record["c"], record["k"], sizes, points, groups=record["g"],
            stride=along["stride"], dilation=along["dilation"], pad_left=along["pad"], dtype=record["dtype"],
        )  # fmt: skip

    def record_of(self, problem: object) -> Record | None:
        """The record of dense tensors with channels innermost, equal padding on both sides and no epilogue."""
        if not isinstance(problem, ConvProblem) or not problem.n or len(problem.sizes) < 2:
            return None
        axes = "dhw"[-len(problem.sizes) :]
        sizes = dict(zip((f"{axis}i" for axis in axes), problem.sizes, strict=True))
        points = dict(zip("zyx"[-len(axes) :], problem.filter, strict=True))  # type: ignore[arg-type]
        along = {
            f"{word}_{axis}": value
            for word, values in (("stride", problem.stride), ("pad", problem.pad_left), ("dilation", problem.dilation))
            for axis, value in zip(axes, values, strict=True)  # type: ignore[arg-type]
        }
        counts = {"n": problem.n, "c": problem.c, "k": problem.k, "g": problem.groups}
        given = {"direction": problem.direction, **counts, **sizes, **points, **along, "dtype": problem.dtype}
        record = self.read(given)
        return record if self.problem(record) == problem else None

    def origin(self, record: Record) -> tuple[str, str]:
        """Origin by layer, whatever the images and the direction."""
        return conv_origins().get(layer_of(record), ("", ""))

    def with_value(self, problem: Any, value: int) -> Any:
        """The problem with a number of slices of backward weight."""
        return dataclasses.replace(problem, split_k=value) if problem.split_k == 0 else problem

    def operands(self, record: Record, seed: int) -> ConvOperands:
        """Integers of magnitude up to 2."""
        return ConvOperands(self.problem(record), seed)

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """A bound plan."""
        assert isinstance(plan, ConvPlan)
        (a, b), (out,) = operands.inputs, operands.outs
        return plan.bind(a, b, out)

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """A call of the plan."""
        assert isinstance(plan, ConvPlan)
        (a, b), (out,) = inputs, outs
        return lambda: plan(a, b, out, stream=stream, workspace=workspace)

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Return False: a plan has one stage."""
        return False

    def flops(self, record: Record) -> int:
        """Multiplications and additions of every filter point with every output, padding included."""
        return self.problem(record).flops

    def bytes_moved(self, record: Record) -> int:
        """Bytes of x, w and y, each once."""
        return self.problem(record).bytes_moved


class ConvOperands:
    """Two inputs and the result, initially poisoned, of one problem."""

    def __init__(self, problem: ConvProblem, seed: int) -> None:
        """Draw the inputs; equal seeds give equal numbers."""
        self._problem, self._rng = problem, np.random.default_rng(seed)
        shapes = {"x": problem.x_shape, "w": problem.w_shape, "y": problem.y_shape}
        self._names = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[problem.direction]
        first, second, result = (shapes[name] for name in self._names)
        self.inputs = (self._drawn(first), self._drawn(second))
        self.outs = (np.zeros(result, dtypes.numpy_dtype(problem.dtype)),)
        self._image = int(self._rng.integers(max(problem.n, 1)))
        self._channels = np.sort(self._rng.choice(problem.k, min(problem.k, 8), replace=False))
        self._known: np.ndarray[Any, Any] | None = None
        self.poison()

    def poison(self) -> None:
        """Fill the result with NaN."""
        self.outs[0][...] = np.nan

    def error(self) -> float:
        """The error of every element; for large problems, of one image or some channels, though all must be written."""
        if not np.isfinite(self.outs[0].astype(np.float32)).all():
            return float("inf")
        tensors = dict(zip(self._names, (*self.inputs, *self.outs), strict=True))
        if self._problem.flops > 2 * _ALL_CHECKED:
            tensors = self._part(tensors)
        exact = exact_result(self._problem, tensors) if self._known is None else self._known
        if exact.size <= _KEPT:
            self._known = exact  # all kernels share it
        off = np.abs(tensors[self._names[2]].astype(np.float64) - exact)
        bound = np.maximum(_ROUNDOFF[self._problem.dtype] * np.abs(exact), np.finfo(np.float64).tiny)
        return float(np.where(off == 0, 0.0, off / bound).max(initial=0.0))

    def _part(self, tensors: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        """One image; for gradients of weights, eight output channels, or all of them if there are groups."""
        if self._problem.direction != "backward_weight":
            image = self._image
            return {name: one if name == "w" else one[image : image + 1] for name, one in tensors.items()}
        if self._problem.groups > 1:
            return tensors  # a group has few channels
        taken = self._channels
        return {**tensors, "y": tensors["y"][..., taken], "w": tensors["w"][taken]}

    def _drawn(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        values = self._rng.integers(-_LARGEST, _LARGEST + 1, shape, np.int8)
        return values.astype(dtypes.numpy_dtype(self._problem.dtype))


def exact_result(problem: ConvProblem, tensors: dict[str, np.ndarray[Any, Any]]) -> np.ndarray[Any, Any]:
    """The direction's result in float64, filter point by filter point, from tensors with channels innermost."""
    groups = problem.groups
    outs = problem.out_size
    along = [
        tuple(getattr(problem, name)) for name in ("filter", "stride", "dilation", "pad_left", "pad_right", "size")
    ]
    points, strides, dilations, left, right, sizes = along
    x = tensors["x"].astype(np.float64) if problem.direction != "backward_data" else None
    y = tensors["y"].astype(np.float64) if problem.direction != "forward" else None
    w = tensors["w"].astype(np.float64) if problem.direction != "backward_weight" else None
    images = (x if x is not None else y).shape[0]  # type: ignore[union-attr]
    per_in, k = problem.c // groups, tensors["w"].shape[0]
    per_out = k // groups
    padded = tuple(low + size + high for low, size, high in zip(left, sizes, right, strict=True))
    inner = tuple(slice(low, low + size) for low, size in zip(left, sizes, strict=True))
    wide = np.zeros((images, *padded, groups, per_in))
    if x is not None:
        wide[(slice(None), *inner)] = x.reshape(images, *sizes, groups, per_in)
    split = None if y is None else y.reshape(images, *outs, groups, per_out)
    result = np.zeros(tensors["y"].shape) if y is None else np.zeros(tensors["w"].shape)
    for at in itertools.product(*map(range, points)):
        steps = zip(at, dilations, outs, strides, strict=True)
        seen: Any = (slice(None), *(slice(p * d, p * d + (o - 1) * s + 1, s) for p, d, o, s in steps))
        point: Any = (slice(None), *at)
        if problem.direction == "forward":
            assert w is not None
            weights = w[point].reshape(groups, per_out, per_in)
            result += np.einsum("...gc,gkc->...gk", wide[seen], weights, optimize=True).reshape(result.shape)
        elif problem.direction == "backward_data":
            assert w is not None and split is not None
            weights = w[point].reshape(groups, per_out, per_in)
            wide[seen] += np.einsum("...gk,gkc->...gc", split, weights, optimize=True)
        else:
            assert split is not None
            flat_x, flat_y = wide[seen].reshape(-1, groups, per_in), split.reshape(-1, groups, per_out)
            result[point] = np.einsum("pgk,pgc->gkc", flat_y, flat_x, optimize=True).reshape(k, per_in)
    if problem.direction == "backward_data":
        return wide[(slice(None), *inner)].reshape(tensors["x"].shape)
    return result
