from __future__ import annotations

import ctypes
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, GemmProblem, ProblemError
from kernelwright.dispatch.core.operation import from_native
from kernelwright.problems.gemm import structs


def test_defaults_follow_from_dtype_and_layout() -> None:
    problem = GemmProblem(4, 5, 6, dtype="bf16", layout="ccr")
    assert (problem.lda, problem.ldb, problem.ldc) == (4, 6, 5)
    assert (problem.dtype_a, problem.dtype_b, problem.dtype_c, problem.dtype_acc) == ("bf16", "bf16", "bf16", "fp32")
    int8 = GemmProblem(4, 5, 6, dtype="int8")
    assert (int8.dtype_c, int8.dtype_acc) == ("int32", "int32")
    assert GemmProblem(4, 5, 6, dtype="fp8", dtype_b="bf8").dtype_c == "fp16"
    assert GemmProblem(0, 0, 0).ldc == 1


def test_equal_problems_are_equal() -> None:
    assert GemmProblem(4, 5, 6) == GemmProblem(4, 5, 6, dtype_a="fp32", lda=6, beta=0)
    assert hash(GemmProblem(4, 5, 6)) == hash(GemmProblem(np.int64(4), 5, 6))  # type: ignore[arg-type]
    assert GemmProblem(4, 5, 6) != GemmProblem(4, 5, 6, alpha=2)
    for two in (2, np.float32(2), np.int8(2), np.array(2)):
        assert GemmProblem(4, 5, 6, alpha=two) == GemmProblem(4, 5, 6, alpha=2.0)  # type: ignore[arg-type]
    with pytest.raises(FrozenInstanceError):
        GemmProblem(4, 5, 6).m = 3  # type: ignore[misc]


def test_flops_bytes_and_text() -> None:
    problem = GemmProblem(4, 5, 6, dtype="fp16")
    assert problem.flops == 240
    assert problem.bytes_moved == 2 * (24 + 30 + 20)
    assert GemmProblem(4, 5, 6, dtype="fp16", beta=1).bytes_moved == problem.bytes_moved + 40
    assert str(problem) == "gemm fp16 rcr 4x5x6"
    assert str(GemmProblem(1, 2, 3, dtype="fp8", dtype_b="bf8", split_k=2)) == "gemm fp8*bf8->fp16 rcr 1x2x3 split_k 2"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"m": -1}, ["m is -1", "0 or more"]),
        ({"k": 1.5}, ["k is 1.5", "integer"]),
        ({"n": 2**63}, ["n is", "at most 9223372036854775807"]),
        ({"split_k": -1}, ["split_k is -1", "0 or more"]),
        ({"split_k": 2**32 + 1}, ["split_k is 4294967297", "at most 4294967295"]),
        ({"alpha": "2"}, ["alpha is '2'", "a real number"]),
        ({"alpha": np.str_("2")}, ["alpha is", "a real number"]),
        ({"alpha": np.complex64(2)}, ["alpha is", "a real number"]),
        ({"alpha": np.zeros(2)}, ["alpha is array", "a real number"]),
        ({"beta": b"2"}, ["beta is b'2'", "a real number"]),
        ({"beta": None}, ["beta is None", "a real number"]),
        ({"beta": 10**400}, ["beta is too large", "real number", "64 bits"]),
        ({"dtype": "float"}, ["dtype is 'float'", "fp32"]),
        ({"dtype_c": "fp64"}, ["dtype_c is 'fp64'"]),
        ({"layout": "rc"}, ["layout is 'rc'"]),
        ({"layout": "rxr"}, ["layout is 'rxr'"]),
        ({"lda": 5}, ["lda is 5", "row-major", "k = 6", "6 or more"]),
        ({"layout": "rrr", "ldb": 4}, ["ldb is 4", "n = 5"]),
        ({"ldc": "x"}, ["ldc is 'x'"]),
        ({"lda": 2**62}, ["m * lda", "at most"]),
    ],
)
def test_illegal_problems_name_field_value_and_choice(fields: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ProblemError) as error:
        GemmProblem(**{"m": 4, "n": 5, "k": 6, **fields})
    for word in words:
        assert word in str(error.value)


def test_struct_has_the_size_of_the_abi_and_survives_a_round_trip() -> None:
    problem = GemmProblem(4, 5, 6, dtype="fp8", dtype_b="bf8", layout="crr", lda=9, alpha=2, beta=3, split_k=2)
    assert ctypes.sizeof(structs.GemmProblem) == 224
    assert ctypes.sizeof(structs.GemmArgs) == 72
    assert from_native(ctypes.addressof(problem.native())) == problem


def test_from_arrays_reads_strides_as_layouts() -> None:
    a, b = np.zeros((4, 6), np.float32), np.zeros((5, 6), np.float32)
    assert GemmProblem.from_arrays(a, b.T) == GemmProblem(4, 5, 6, layout="rcr", split_k=0)
    wide = np.zeros((4, 10), np.float32)
    problem = GemmProblem.from_arrays(wide[:, :6], b.T, c=np.zeros((4, 5), np.float32), beta=1.0, alpha=3, split_k=1)
    assert problem == GemmProblem(4, 5, 6, lda=10, alpha=3, beta=1)
    with pytest.raises(ArrayError, match="k is 6 and 5"):
        GemmProblem.from_arrays(a, b)
