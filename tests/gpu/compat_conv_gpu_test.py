"""libdispatcher_conv_lib.so on the device: every direction through the familiar functions, exact on small integers.

$KERNELWRIGHT_LIBRARY must export them (libdispatcher_conv_lib.so serves as the native dispatcher too); else skipped.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from conv_operands import convolve, tensor  # noqa: E402
from places import DEVICE, ORDINAL, current_stream, synchronize  # noqa: E402

from conftest import HERE  # noqa: E402
from convolution.compat.client import DIRECTIONS, native_problem, opened  # noqa: E402
from kernelwright.dispatch import ConvProblem  # noqa: E402

FOLDER = Path(os.environ.get("KERNELWRIGHT_GPU_CONV", HERE.parents[1] / ".gpu" / "conv" / "sm_90a"))
SHAPES: tuple[dict[str, Any], ...] = (
    {"n": 2, "c": 64, "k": 96, "size": (14, 15), "filter": 3, "pad_left": 1, "pad_right": 1},
    {"n": 2, "c": 3, "k": 64, "size": (21, 22), "filter": 7, "stride": 2, "pad_left": 3, "pad_right": 3},
    {"n": 2, "c": 48, "k": 48, "groups": 48, "size": (14, 13), "filter": 3, "pad_left": 1, "pad_right": 1},
    {"n": 1, "c": 32, "k": 64, "size": (5, 7, 8), "filter": 3, "pad_left": 1, "pad_right": 1},
)


@pytest.fixture
def conv_lib(gpu: None) -> Iterator[Any]:
    native = os.environ.get("KERNELWRIGHT_LIBRARY", "/-")
    if not (FOLDER / "manifest.json").exists() or not Path(native).exists():
        pytest.skip(f"needs a convolution library in {FOLDER} and KERNELWRIGHT_LIBRARY")
    if not hasattr(ctypes.CDLL(native), "conv_dispatcher_run"):
        pytest.skip("KERNELWRIGHT_LIBRARY does not export the functions of libdispatcher_conv_lib.so")
    library = opened(Path(native))
    assert library.conv_dispatcher_init_from(os.fsencode(FOLDER), b"bf16") == 0, library.conv_dispatcher_last_error()
    yield library
    library.conv_dispatcher_cleanup()


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_direction_is_exact(conv_lib: Any, direction: str, shape: dict[str, Any]) -> None:
    problem = ConvProblem(direction, dtype="bf16", **shape)
    kinds = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[direction]
    a, b, out = (tensor(problem, kind) for kind in kinds)
    generator = torch.Generator(DEVICE).manual_seed(problem.k)
    for one in (a, b):
        one.fill(True, generator)
    around = out.around()
    pointers = [one.view.data_ptr() for one in (a, b, out)]
    with torch.cuda.device(ORDINAL):
        assert conv_lib.conv_dispatcher_is_supported(native_problem(problem)) == 1, (
            conv_lib.conv_dispatcher_last_error()
        )
        time = conv_lib.conv_dispatcher_run(*pointers, ctypes.byref(native_problem(problem)), current_stream())
    synchronize()
    assert time > 0, conv_lib.conv_dispatcher_last_error()
    assert torch.equal(out.around(), around)
    wanted = convolve(problem, a.view.double(), b.view.double()).to(out.view.dtype)
    assert torch.equal(out.view, wanted)


def test_kernels_are_counted_and_named(conv_lib: Any) -> None:
    count = conv_lib.conv_dispatcher_get_kernel_count()
    text = ctypes.create_string_buffer(256)
    assert count > 0 and conv_lib.conv_dispatcher_has_kernels() == 1
    names = set()
    for index in range(count):
        assert conv_lib.conv_dispatcher_get_kernel_name(index, text, 256) == 0
        names.add(text.value)
    assert len(names) == count
