"""Batches, D tensors, activations, groups, shuffled B and chosen split-K, against the mock's variants."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
import pytest

from kernelwright.dispatch import (
    ArrayError,
    Dispatcher,
    GemmProblem,
    GroupedGemmProblem,
    KernelEntry,
    KernelLibrary,
    NoKernelError,
    ProblemError,
    ShuffledB,
)
from kernelwright.dispatch.core.operation import from_native
from kernelwright.dispatch.operations.gemm.from_arrays import read_operands
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.testdata.mocks import Foreign
from kernelwright.problems import literals
from kernelwright.problems.gemm import structs


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("variants"), "MOCK_VARIANTS"))


@pytest.fixture
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher(library)


def f32(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Arrays of the calls that gemm() checked in full, in order."""
    calls: list[object] = []

    def spy(*arrays: Any, **options: Any) -> Any:
        calls.append(arrays)
        return read_operands(*arrays, **options)

    monkeypatch.setattr("kernelwright.dispatch.operations.gemm.calls.read_operands", spy)
    return calls


def test_three_dimensions_are_a_batch(dispatcher: Dispatcher) -> None:
    a, b, c = f32(3, 4, 6), f32(3, 6, 5), f32(3, 4, 5)
    np.testing.assert_array_equal(dispatcher.gemm(a, b), a @ b)
    np.testing.assert_array_equal(dispatcher.gemm(a, b[1]), a @ b[1])
    np.testing.assert_array_equal(dispatcher.gemm(a[0], b), a[0] @ b)
    np.testing.assert_array_equal(dispatcher.gemm(a, b[:1]), a @ b[:1])
    np.testing.assert_array_equal(dispatcher.gemm(a[:1], b[:1]), a[:1] @ b[:1])
    shared = np.broadcast_to(b[0], (3, 6, 5))
    np.testing.assert_array_equal(dispatcher.gemm(a, shared), a @ shared)
    np.testing.assert_array_equal(dispatcher.gemm(a, b, c, alpha=2, beta=-1), 2 * (a @ b) - c)
    assert dispatcher.gemm(a[:0], b[:0]).shape == (0, 4, 5)
    wide, heads = np.full((3, 7, 9), 7, np.float32), np.full((4, 15), 7, np.float32)
    dispatcher.gemm(a, b, out=wide[:, 2:6, 1:6])
    np.testing.assert_array_equal(wide[:, 2:6, 1:6], a @ b)
    assert (wide[:, :2] == 7).all() and (wide[:, :, 0] == 7).all() and (wide[:, :, 6:] == 7).all()
    side_by_side = heads.reshape(4, 3, 5).swapaxes(0, 1)  # each product has columns of one matrix of its own
    dispatcher.gemm(a, b, out=side_by_side)
    np.testing.assert_array_equal(side_by_side, a @ b)
    problem = GemmProblem.from_arrays(a, shared, out=side_by_side)
    assert (problem.batch, problem.stride_a, problem.stride_b, problem.stride_c, problem.ldc) == (3, 24, 0, 5, 15)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ((f32(3, 4, 6), f32(2, 6, 5)), "batches are a of 3, b of 2"),
        ((f32(3, 4, 6), f32(3, 6, 5), None, f32(4, 5)), "out has two dimensions; allowed for a batch: 3"),
        ((f32(3, 4, 6), f32(6, 5), None, f32(1, 4, 5)), "out of 1"),
        ((f32(3, 4, 6)[::-1], f32(6, 5)), "negative batch stride"),
        ((f32(3, 4, 6), f32(6, 5), None, np.broadcast_to(f32(4, 5), (3, 4, 5))), "broadcast|cannot be written"),
        ((f32(2, 3, 4, 6), f32(3, 2, 6, 5)), r"batches are a of \(2, 3\), b of \(3, 2\)"),
    ],
)
def test_batches_that_do_not_fit_are_refused(dispatcher: Dispatcher, arrays: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ArrayError, match=message):
        dispatcher.gemm(*arrays)


def test_results_of_a_batch_must_be_apart(dispatcher: Dispatcher) -> None:
    a, b = f32(2, 4, 6), f32(2, 6, 5)
    overlapping = np.lib.stride_tricks.as_strided(np.zeros(64, np.float32), (2, 4, 5), (16, 20, 4))
    with pytest.raises(ProblemError, match="stride_c is 4, so results would overlap"):
        dispatcher.gemm(a, b, out=overlapping)
    with pytest.raises(ArrayError, match="shares memory with a"):
        dispatcher.gemm(a[:, :, :5], f32(2, 5, 5), out=a[:, :, :5])


def test_d_tensors_and_activations(dispatcher: Dispatcher, slow_calls: list[object]) -> None:
    a, b, d, bias = f32(4, 6), f32(6, 5), f32(4, 5), f32(5)
    for _ in range(3):
        for extra in (d, bias, bias[None, :], np.broadcast_to(bias, (4, 5))):
            expected = np.maximum(a @ b + extra, 0)
            np.testing.assert_array_equal(dispatcher.gemm(a, b, ds=[extra], activation="relu"), expected)
            out = np.empty((4, 5), np.float32)
            assert dispatcher.gemm(a, b, out=out, ds=(extra,), activation="relu") is out
            np.testing.assert_array_equal(out, expected)
        np.testing.assert_array_equal(dispatcher.gemm(a, b, ds=[d, bias], d_op="multiply"), (a @ b) * d * bias)
    before = len(slow_calls)
    dispatcher.gemm(a, b, ds=[d, bias], d_op="multiply")
    assert len(slow_calls) == before  # recognised
    batch = f32(2, 4, 6)
    per_batch = f32(2, 1, 5)
    product = dispatcher.gemm(batch, b, ds=[per_batch], activation="relu")
    np.testing.assert_array_equal(product, np.maximum(batch @ b + per_batch, 0))


@pytest.mark.parametrize("shape", [(4, 1), (1, 5), (1, 1)])
def test_a_bias_beside_a_result_of_one_row_or_column(dispatcher: Dispatcher, shape: tuple[int, int]) -> None:
    """Its strides describe both layouts, and the bias fits one of them."""
    m, n = shape
    a, b, bias, out = f32(m, 6), f32(6, n), f32(n), np.empty(shape, np.float32)
    expected = np.maximum(a @ b + bias, 0)
    for given in (bias, bias[None, :]):
        np.testing.assert_array_equal(dispatcher.gemm(a, b, out=out, ds=[given], activation="relu"), expected)
    plan = dispatcher.plan(GemmProblem.from_arrays(a, b, out=out, ds=[bias], activation="relu"))
    np.testing.assert_array_equal(plan(a, b, out=out, ds=[bias]), expected)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"ds": [f32(4, 4)]}, ArrayError, r"ds\[0\] is 4x4; allowed: 4x5, or 1x5"),
        ({"ds": [f32(4, 5).astype(np.float16)]}, ArrayError, r"ds\[0\] is fp16; allowed: fp32"),
        ({"ds": [f32(4, 1)]}, ArrayError, "one value for each row"),
        ({"ds": [f32(10)[::2]], "activation": "relu"}, ArrayError, "lie together"),
        ({"ds": [f32(5)] * 5}, ProblemError, "num_d is 5; allowed: 0 to 4"),
        ({"ds": [f32(5)], "d_op": "minus"}, ProblemError, "d_op is 'minus'; allowed: add, multiply"),
        ({"activation": "elu"}, ProblemError, r"activation is 'elu' \(did you mean 'relu'\?\); allowed: none, relu"),
        ({"ds": [f32(5)], "activation": "silu"}, NoKernelError, "activation is silu, this kernel does relu"),
        ({"ds": [f32(5)] * 3}, NoKernelError, "the problem has 3 D tensors"),
    ],
)
def test_epilogues_that_do_not_fit_are_refused(
    dispatcher: Dispatcher, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        dispatcher.gemm(f32(4, 6), f32(6, 5), **options)


def test_results_must_not_share_memory_with_d(dispatcher: Dispatcher) -> None:
    a, b, d = f32(4, 6), f32(6, 5), f32(4, 5)
    for _ in range(2):  # also once the call is known
        with pytest.raises(ArrayError, match=r"out shares memory with ds\[0\]"):
            dispatcher.gemm(a, b, out=d, ds=[d], activation="relu")
        dispatcher.gemm(a, b, out=np.empty((4, 5), np.float32), ds=[d], activation="relu")


def test_plans_take_d_tensors(dispatcher: Dispatcher) -> None:
    a, b, d, out = f32(4, 6), f32(6, 5), f32(4, 5), np.empty((4, 5), np.float32)
    plan = dispatcher.plan(GemmProblem(4, 5, 6, layout="rrr", num_d=1, activation="relu"))
    expected = np.maximum(a @ b + d, 0)
    np.testing.assert_array_equal(plan(a, b, out=out, ds=[d]), expected)
    np.testing.assert_array_equal(plan.bind(a, b, out=out, ds=[d])(), expected)
    out[:] = 0
    plan(a.ctypes.data, b.ctypes.data, out=out.ctypes.data, ds=[d.ctypes.data])
    np.testing.assert_array_equal(out, expected)
    with pytest.raises(ArrayError, match="ds has 0 arrays; allowed for this plan: 1"):
        plan(a, b, out=out)
    with pytest.raises(ArrayError, match=r"ds\[0\] has leading dimension 0 .* allowed for this plan: 5 and 0"):
        plan(a, b, out=out, ds=[f32(5)])
    with pytest.raises(ArrayError, match=r"multi_d\[0\] is null"):
        plan(a.ctypes.data, b.ctypes.data, out=out.ctypes.data, ds=[0])


def test_plans_take_batches(dispatcher: Dispatcher) -> None:
    plan = dispatcher.plan(GemmProblem(4, 5, 6, layout="rrr", batch=3, stride_b=0))
    a, b, out = f32(3, 4, 6), f32(6, 5), np.empty((3, 4, 5), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(plan(a, b, out=out), a @ b)
    with pytest.raises(ArrayError, match="a is a batch of 1; allowed for this plan: 3"):
        plan(a[0], b, out=out)
    with pytest.raises(ArrayError, match="batch stride of 48 elements; allowed for this plan: 24"):
        plan(f32(6, 4, 6)[::2], b, out=out)


def test_fields_of_variants_are_checked_and_filled_in() -> None:
    problem = GemmProblem(4, 5, 6, batch=2, num_d=2, ld_multi_d=(0, 8), activation="gelu")
    assert (problem.stride_a, problem.stride_b, problem.stride_c) == (24, 30, 20)
    assert problem.ld_multi_d == (0, 8) and problem.stride_multi_d == (5, 32)
    assert GemmProblem(4, 5, 6, stride_a=99, d_op="multiply") == GemmProblem(4, 5, 6)
    assert problem.flops == 480 and problem.d_spans == (40, (32 + 3 * 8 + 5) * 4)
    assert problem.bytes_moved == 4 * (2 * (24 + 30 + 20) + 2 * 5 + 2 * 20)
    assert str(problem) == "gemm fp32 rcr 2*4x5x6 add 2 D gelu"
    assert from_native(ctypes.addressof(problem.native())) == problem
    for fields, word in [
        ({"batch": 0}, "batch is 0"),
        ({"num_d": 1, "ld_multi_d": (4,)}, "ld_multi_d is 4"),
        ({"num_d": 1, "ld_multi_d": (5, 5)}, "ld_multi_d has 2 numbers"),
        ({"batch": 2, "stride_a": -1}, "stride_a is -1"),
        ({"batch": 2**60}, "batch . stride_a"),
        ({"b_format": -1}, "b_format is -1"),
    ]:
        with pytest.raises(ProblemError, match=word):
            GemmProblem(4, 5, 6, **fields)  # type: ignore[arg-type]


def test_groups_have_shapes_of_their_own(dispatcher: Dispatcher) -> None:
    shapes = [(4, 5, 6), (1, 5, 3), (0, 2, 2), (7, 1, 0)]
    a, b = [f32(m, k) for m, _, k in shapes], [f32(k, n) for _, n, k in shapes]
    expected = [x @ y for x, y in zip(a, b, strict=True)]
    for actual, wanted in zip(dispatcher.grouped_gemm(a, b), expected, strict=True):
        np.testing.assert_array_equal(actual, wanted)
    outs = [np.full((m, n), 2, np.float32) for m, n, _ in shapes]
    assert dispatcher.grouped_gemm(a, b, outs, outs, alpha=2, beta=3)[0] is outs[0]
    for actual, wanted in zip(outs, expected, strict=True):
        np.testing.assert_array_equal(actual, 2 * wanted + 6)
    assert dispatcher.grouped_gemm([], []) == []
    problem = GroupedGemmProblem(shapes, layout="rrr")
    plan = dispatcher.plan_grouped(problem)
    assert plan is dispatcher.plan_grouped(GroupedGemmProblem(tuple(shapes), layout="rrr", dtype_a="fp32"))
    assert plan.kernel.name == "gemm_fp32_rrr_grouped" and plan.workspace_bytes == 4096 and problem.flops == 270
    plan(a, b, outs)
    np.testing.assert_array_equal(outs[0], expected[0])
    outs[0][:] = 0
    plan(*([array.ctypes.data for array in arrays] for arrays in (a, b, outs)))
    np.testing.assert_array_equal(outs[0], expected[0])
    assert repr(plan) == "<GroupedPlan grouped gemm fp32 rrr of 4 groups: 4x5x6, 1x5x3, 0x2x2, 7x1x0 with " + (
        "gemm_fp32_rrr_grouped>"
    )
    explanation = dispatcher.explain(problem)
    assert explanation.chosen is not None and explanation.chosen.name == "gemm_fp32_rrr_grouped"
    assert dispatcher.select(problem).kernel is plan.kernel
    assert {kernel.reason for kernel in explanation if kernel.rank is None} == {
        "the problem's operation is grouped gemm, this kernel's is gemm"
    }
    assert from_native(ctypes.addressof(problem.native())) == problem


def test_groups_that_do_not_fit_are_refused(dispatcher: Dispatcher) -> None:
    a, b = [f32(4, 6), f32(2, 3)], [f32(6, 5), f32(3, 2)]
    outs = [np.empty((4, 5), np.float32), np.empty((2, 2), np.float32)]
    refused: list[tuple[str, type[Exception], tuple[Any, ...]]] = [
        ("a 2, b 1", ArrayError, (a, b[:1])),
        ("group 1 is a batch", ArrayError, ([*a[:1], f32(2, 2, 3)], b)),
        ("k is 6 and 3", ArrayError, (a, b[::-1])),
        ("no layout fits all groups", ArrayError, (a, [b[0], f32(2, 3).T])),
        ("dtype_b is fp16 in group 1, fp32 in group 0", ArrayError, (a, [b[0], b[1].astype(np.float16)])),
        (r"out\[1\] shares memory with out\[0\]", ArrayError, (a, b, [outs[0], outs[0][:2, :2]])),
        ("group 0: out shares memory with b", ArrayError, (a[1:], [outs[0][:3, :2]], [outs[0][2:, :2]])),
        ("cs is given without outs", ArrayError, (a, b, None, outs)),
        ("group 0: k is 2000", NoKernelError, ([f32(1, 2000)], [f32(2000, 1)])),
    ]
    for message, kind, arguments in refused:
        with pytest.raises(kind, match=message):
            dispatcher.grouped_gemm(*arguments, beta=1.0 if len(arguments) == 4 and arguments[2] is not None else 0.0)
    plan = dispatcher.plan_grouped(GroupedGemmProblem([(4, 5, 6), (2, 2, 3)], layout="rrr"))
    with pytest.raises(ArrayError, match="b has 1 matrices; allowed: 2"):
        plan(a, b[:1], outs)
    with pytest.raises(ArrayError, match=r"a\[1\] is 4x6 fp32; allowed for this plan: 2x3 fp32"):
        plan([a[0], a[0]], b, outs)
    with pytest.raises(ArrayError, match=r"b\[1\] is null"):
        plan([1, 1], [1, 0], [1, 1])
    wrong: list[tuple[list[tuple[int, ...]], str]] = [
        ([(1, 2)], "group 0 is"),
        ([(1, 2, 3), (1, 2, -3)], "group 1: k is -3"),
    ]
    for groups, word in wrong:
        with pytest.raises(ProblemError, match=word):
            GroupedGemmProblem(groups)


def test_b_is_shuffled_once_and_used_again(dispatcher: Dispatcher, slow_calls: list[object]) -> None:
    weight = f32(5, 6)
    for b in (weight.T, np.ascontiguousarray(weight.T), f32(10, 12)[::2, :6].T):  # either layout, gaps: it is copied
        shuffled = dispatcher.shuffle_b(b, m=4)
        assert isinstance(shuffled, ShuffledB) and shuffled.shape == (6, 5) and shuffled.data.nbytes == 120
        for _ in range(2):
            a = f32(4, 6)
            np.testing.assert_array_equal(dispatcher.gemm(a, shuffled), a @ b)
    before = len(slow_calls)
    dispatcher.gemm(a, shuffled)
    assert len(slow_calls) == before  # recognised
    problem = GemmProblem.from_arrays(a, shuffled)
    assert problem.b_format == 77 and str(problem).endswith("B shuffled")
    plan, out = dispatcher.plan(problem), np.empty((4, 5), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(plan(a, shuffled, out=out), a @ b)
    with pytest.raises(ArrayError, match="b is not shuffled; allowed for this plan: one that shuffle_b made"):
        plan(a, b, out=out)
    plain = dispatcher.plan(GemmProblem(4, 5, 6, layout="rrr"))
    with pytest.raises(ArrayError, match="b is shuffled for another kernel; allowed for this plan: a matrix as it is"):
        plain(a, shuffled, out=out)
    with pytest.raises(ArrayError, match="shuffled already"):
        dispatcher.shuffle_b(shuffled)
    with pytest.raises(NoKernelError, match="layout_b"):
        dispatcher.shuffle_b(weight.T, layout="rrr")
    with pytest.raises(NoKernelError, match="dtype_a is fp16"):
        dispatcher.shuffle_b(weight.T.astype(np.float16))
    with pytest.raises(ArrayError, match="shares memory with b"):
        dispatcher.gemm(a, shuffled, out=shuffled.data.view(np.float32)[:20].reshape(4, 5))


def test_slices_of_k_are_chosen(library: KernelLibrary) -> None:
    dispatcher = Dispatcher(library, selection="gemm_fp32_rrr_splitk")
    plan = dispatcher.plan(GemmProblem(8, 16, 64, layout="rrr", split_k=0))
    assert plan.split_k == 2  # one slice it leaves to others, three tiles of k there are not
    assert plan.choices == plan.stages[0].choices == "split_k=2" and len(plan.stages) == 1
    assert dispatcher.explain(plan.problem).kernels[0].choices == "split_k=2"
    a, b = f32(8, 64), f32(64, 16)
    np.testing.assert_array_equal(dispatcher.gemm(a, b), a @ b)
    assert dispatcher.gemm(a, b, split_k=2) is not None
    with pytest.raises(NoKernelError, match="split_k is 1"):
        dispatcher.gemm(a, b, split_k=1)


def test_functions_score_groups_too(library: KernelLibrary) -> None:
    seen: list[object] = []

    def first(problem: Any, candidates: Sequence[KernelEntry]) -> list[float]:
        seen.append(problem)
        return [0.0] * len(candidates)

    problem = GroupedGemmProblem([(1, 2, 3)], layout="rrr")
    assert Dispatcher(library, selection=first).select(problem).reason == "only kernel that fits"
    assert seen == [problem]


def test_structs_have_the_sizes_of_the_abi() -> None:
    sizes = {
        kind: ctypes.sizeof(kind) for kind in (structs.GemmGroup, structs.GroupedGemmProblem, structs.GroupedGemmArgs)
    }
    assert list(sizes.values()) == [48, 72, 56]


def test_tensors_of_torch_are_batches_d_tensors_and_weights(dispatcher: Dispatcher, slow_calls: list[object]) -> None:
    torch = pytest.importorskip("torch")
    a, b, bias = torch.randn(3, 4, 6), torch.randn(6, 5), torch.randn(5)
    for _ in range(2):
        torch.testing.assert_close(dispatcher.gemm(a, b), a @ b)
        expected = torch.relu(a @ b + bias)
        torch.testing.assert_close(dispatcher.gemm(a, b, ds=[bias], activation="relu"), expected)
        out = torch.empty(3, 4, 5)
        assert dispatcher.gemm(a, b, out=out, ds=[bias], activation="relu") is out
        torch.testing.assert_close(out, expected)
    assert len(slow_calls) == 3
    shuffled = dispatcher.shuffle_b(b)
    assert isinstance(shuffled.data, torch.Tensor)
    torch.testing.assert_close(dispatcher.gemm(a[0], shuffled), a[0] @ b)
    products = dispatcher.grouped_gemm([a[0], a[1][:2]], [b, b])
    torch.testing.assert_close(products[1], a[1][:2] @ b)


def test_what_a_selection_raises_while_b_is_shuffled_is_raised_once(library: KernelLibrary) -> None:
    calls: list[int] = []

    def score(problem: GemmProblem, candidates: Sequence[object]) -> list[float]:
        calls.append(len(candidates))
        if len(calls) == 2:  # the first call chooses the format, the second orders B for it
            raise RuntimeError("mine")
        return [0.0] * len(candidates)

    dispatcher = Dispatcher(library, selection=score)
    with pytest.raises(RuntimeError, match="mine"):
        dispatcher.shuffle_b(f32(6, 5))
    with pytest.raises(NoKernelError):
        dispatcher.plan(GemmProblem(4, 5, 6, dtype="bf16", layout="ccr"))


def test_other_array_libraries_pose_variants_too(dispatcher: Dispatcher) -> None:
    a, b, d, out = f32(3, 4, 6), f32(6, 5), f32(4, 5), np.empty((3, 4, 5), np.float32)
    dispatcher.gemm(Foreign(a), Foreign(b), out=Foreign(out), ds=[Foreign(d)], activation="relu")
    np.testing.assert_array_equal(out, np.maximum(a @ b + d, 0))
    dispatcher.grouped_gemm([Foreign(a[0])], [Foreign(b)], [Foreign(out[1])])
    np.testing.assert_array_equal(out[1], a[0] @ b)
    shuffled = dispatcher.shuffle_b(Foreign(b))
    dispatcher.gemm(Foreign(a[2]), shuffled, out=Foreign(out[0]))
    np.testing.assert_array_equal(out[0], a[2] @ b)


@pytest.fixture(scope="module")
def any_epilogue(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    """The variants, of which the one that adds serves any epilogue."""
    mocks.native_library()
    return Dispatcher(mocks.write_library(tmp_path_factory.mktemp("any"), "MOCK_VARIANTS", "MOCK_ANY_EPILOGUE"))


def test_a_kernel_that_reads_its_epilogue_serves_each(any_epilogue: Dispatcher) -> None:
    """The mock computes relu and no other activation; up to four D tensors, added or multiplied."""
    dispatcher = any_epilogue
    a, b, ds = f32(4, 6), f32(6, 5), [f32(4, 5), f32(5), f32(4, 5), f32(5)]
    for count in (1, 3, 4):
        np.testing.assert_array_equal(dispatcher.gemm(a, b, ds=ds[:count]), a @ b + sum(ds[:count]))
        relu = np.maximum(a @ b + sum(ds[:count]), 0)
        np.testing.assert_array_equal(dispatcher.gemm(a, b, ds=ds[:count], activation="relu"), relu)
    np.testing.assert_array_equal(dispatcher.gemm(a, b, ds=ds[:1], d_op="multiply"), a @ b * ds[0])
    np.testing.assert_array_equal(dispatcher.gemm(a, b, activation="relu"), np.maximum(a @ b, 0))
    for activation in get_args(literals.Activation)[1:]:
        problem = GemmProblem(4, 5, 6, layout="rrr", num_d=2, activation=activation, batch=3)
        assert "_Add_" in dispatcher.plan(problem).kernel.name


def test_what_is_compiled_in_is_preferred(any_epilogue: Dispatcher) -> None:
    given: list[dict[str, Any]] = [{"num_d": 2, "d_op": "multiply"}, {}]
    for fields in given:
        explained = any_epilogue.explain(GemmProblem(640, 640, 640, layout="rrr", **fields))
        served = [kernel.name for kernel in explained if kernel.supported]
        (any_one,) = (name for name in served if "_Add_" in name)
        assert len(served) > 1 and served[0] != any_one and explained.chosen is not None
        assert "_Add_" not in explained.chosen.name
