"""Convolution kernels for AMD GPUs: what a 32-bit number in their arguments cannot hold is refused, nothing else."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from amd.hollow import dispatcher
from kernelwright.dispatch import ConvProblem, Dispatcher, NoKernelError

_TILE: dict[str, Any] = {"tile": [128, 128, 32], "wave": [2, 2, 1], "warp_tile": [32, 32, 16], "pipeline": "compv3"}
_KIND: dict[str, Any] = {"op": "convolution", "dtype": "fp16", "layout": "nhwgc", **_TILE}
SPECS: dict[str, tuple[dict[str, Any], ...]] = {
    "forward": ({**_KIND, "direction": "forward"},),
    "data": ({**_KIND, "direction": "backward_data"},),
    "weight": ({**_KIND, "direction": "backward_weight"},),
    "slices": ({**_KIND, "direction": "backward_weight", "two_stage": True},),
}
DIRECTIONS = {"forward": "forward", "data": "backward_data", "weight": "backward_weight", "slices": "backward_weight"}
POINT: dict[str, Any] = {"n": 1, "size": (1, 1), "filter": 1, "dtype": "fp16"}
PLANE: dict[str, Any] = {"n": 2, "c": 64, "k": 64, "size": (28, 28), "filter": 3, "dtype": "fp16"}
LARGE: dict[str, Any] = {"n": 1, "c": 8, "k": 8, "size": (8000, 8192), "filter": 3, "dtype": "fp16"}

REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("slices", {**POINT, "c": 24584, "k": 24584, "split_k": 2}, "24584 rows of 24584 elements of 4 bytes"),
    ("slices", {**POINT, "c": 2**18, "k": 2**18, "groups": 16, "split_k": 2}, "weights are more than a launch"),
    ("weight", {**POINT, "c": 40000, "k": 40000, "split_k": 1}, "rows of 40000 elements of 2 bytes"),
    ("weight", {**PLANE, "n": 0, "split_k": 1}, "there is nothing to sum up; kernels that leave slices serve that"),
    ("forward", {**PLANE, "n": 2**15}, "byte offsets do not fit into 31 bits"),
    ("forward", {**PLANE, "n": 1, "stride_x": (1, 1, 2**26, 64)}, "byte offsets do not fit into 31 bits"),
    ("data", {**PLANE, "stride": (1, 2**15), "dilation": (1, 2**16), "pad_left": (0, 2**17)}, "what a filter reaches"),
    ("data", {**PLANE, "stride": (1, 2**19), "c": 512, "k": 8}, "filter points of a"),
    ("forward", {**PLANE, "size": (2, 28), "filter": 1, "stride": (2**21, 1)}, "that a stride leads to"),
    # Tiles end beyond the last filter point: what is masked there would come back into the buffer, 2^31 bytes on.
    ("forward", {**LARGE, "dilation": (400, 1)}, "x spans 1 images of .*: its byte offsets do not fit into 31 bits"),
]
SERVED: list[tuple[str, dict[str, Any]]] = [
    ("slices", {**POINT, "c": 16384, "k": 16384, "split_k": 2}),
    ("weight", {**POINT, "c": 24584, "k": 24584, "split_k": 1}),
    ("forward", {**PLANE, "n": 2**14}),
    ("data", {**PLANE, "stride": 2, "pad_left": 1}),
    ("slices", {**PLANE, "n": 0, "split_k": 2}),  # zeros
    ("forward", {**PLANE, "n": 0}),
    ("forward", LARGE),
]


@cache
def made(name: str) -> Dispatcher:
    return dispatcher(SPECS[name])


@pytest.mark.parametrize(("name", "fields", "why"), REFUSED)
def test_what_does_not_fit_is_refused_with_its_reason(name: str, fields: dict[str, Any], why: str) -> None:
    with pytest.raises(NoKernelError, match=why):
        made(name).plan(ConvProblem(DIRECTIONS[name], **fields))


@pytest.mark.parametrize(("name", "fields"), SERVED)
def test_what_fits_is_planned(name: str, fields: dict[str, Any]) -> None:
    made(name).plan(ConvProblem(DIRECTIONS[name], **fields))
