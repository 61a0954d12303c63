"""Random batches, D tensors and groups: a right result, or an error of ours that says what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, NoKernelError, ProblemError
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.gemm import structs
from kernelwright.problems.gemm.description import MAX_D, DOp
from kernelwright.problems.shared import Activation

Array = np.ndarray[Any, Any]
SEVERAL = settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
POISON = np.float32(12345)


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(mocks.write_library(tmp_path_factory.mktemp("variants"), "MOCK_VARIANTS"))


def says_what_is_allowed(error: Exception) -> None:
    text = error.reason if isinstance(error, NoKernelError) else str(error)  # lines of advice stand behind it
    advice = ("allowed", "must be equal", "pass ", "leave ", "fits all groups", "must lie together", "none of")
    assert any(word in text for word in advice), text
    assert "\n" not in text and len(text) < 1000


_LEGAL = {
    **dict.fromkeys(("m", "n", "k"), st.integers(0, 5)),
    "layout": st.sampled_from(["rrr", "rcr", "crc", "ccc"]),
    **dict.fromkeys(("lda", "ldb", "ldc"), st.none() | st.integers(5, 7)),
    "split_k": st.integers(0, 2),
    "batch": st.integers(1, 3),
    **dict.fromkeys(("stride_a", "stride_b"), st.none() | st.integers(0, 30)),
    "stride_c": st.none() | st.integers(35, 40),
    "d_op": st.sampled_from(sorted(DOp.codes)),
    "activation": st.sampled_from(sorted(Activation.codes)),
}
_ODD = st.integers(-2, 9)
_ANY = {**{name: _ODD for name in _LEGAL}, "layout": _LEGAL["layout"]}
_ANY.update(d_op=st.just("max"), activation=st.just("mish"), num_d=_ODD)
_ANY.update(dict.fromkeys(("ld_multi_d", "stride_multi_d"), st.lists(_ODD, max_size=5)))


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Fields of a GemmProblem: legal ones, then up to two that may be anything."""
    fields = {name: draw(values) for name, values in _LEGAL.items()}
    fields["num_d"] = count = draw(st.integers(0, 4))
    fields["ld_multi_d"] = draw(st.lists(st.sampled_from([0, 5, 6]), min_size=count, max_size=count))
    fields["stride_multi_d"] = draw(st.lists(st.integers(0, 30), min_size=count, max_size=count))
    for name in draw(st.lists(st.sampled_from(sorted(_ANY)), max_size=2)):
        fields[name] = draw(_ANY[name])
    return fields


@SEVERAL
@given(fields=problems())
def test_problems_are_legal_where_the_native_dispatcher_says_so(fields: dict[str, Any]) -> None:
    mocks.native_library()
    validate: Callable[[Any], int] = native.library().kw_problem_validate
    try:
        problem = GemmProblem(**fields)
    except ProblemError as error:
        says_what_is_allowed(error)
        named = [name for name in fields if name in str(error)]
        assert named
        raw = _raw(fields)
        # What C cannot say in its types has no counterpart there.
        assert raw is None or validate(native.byref(raw)) != 0, (str(error), fields)
    else:
        assert validate(native.byref(problem.native())) == 0, native.library().kw_last_error()


def _raw(fields: dict[str, Any]) -> structs.GemmProblem | None:
    """The C struct of fields as they are; None where one of them has no place in it."""
    f, one = fields, GemmProblem(1, 1, 1, layout=fields["layout"]).native()
    lists = [f["ld_multi_d"], f["stride_multi_d"]]
    known = f["d_op"] in DOp.codes and f["activation"] in Activation.codes
    if not known or f["split_k"] < 0 or any(len(x) != f["num_d"] or len(x) > MAX_D.value for x in lists):
        return None
    for name in ("m", "n", "k", "split_k", "batch", "num_d"):
        setattr(one, name, f[name])
    one.d_op, one.activation = DOp.codes[f["d_op"]], Activation.codes[f["activation"]]
    for number, (rows, columns) in enumerate((("m", "k"), ("k", "n"), ("m", "n"))):
        inner, outer = (f[columns], f[rows]) if f["layout"][number] == "r" else (f[rows], f[columns])
        leading = f["ld" + "abc"[number]]
        leading = max(inner, 1) if leading is None else leading
        stride = f["stride_" + "abc"[number]]
        setattr(one, "ld" + "abc"[number], leading)
        setattr(one, "stride_" + "abc"[number], outer * leading if stride is None else stride)
    for target, values in ((one.ld_multi_d, lists[0]), (one.stride_multi_d, lists[1])):
        target[: len(values)] = values
    return one


@st.composite
def matrices(draw: st.DrawFn, rows: int, columns: int, batch: int | None) -> Array:
    """As asked mostly, in any memory; else another extent, rank, dtype or stride."""
    shape = [rows, columns] if batch is None else [batch, rows, columns]
    kind = draw(st.sampled_from(["dense"] * 8 + ["turned", "wide", "gaps", "extent", "rank", "dtype", "backwards"]))
    if kind == "extent":
        shape[draw(st.integers(0, len(shape) - 1))] += 1
    if kind == "rank":
        shape = draw(st.sampled_from([shape[1:], [1, *shape]]))
    values = np.random.default_rng(draw(st.integers(0, 99))).integers(-4, 5, shape).astype(np.float32)
    if kind == "turned" and len(shape) > 1:
        return np.ascontiguousarray(values.swapaxes(-1, -2)).swapaxes(-1, -2)
    if kind in ("wide", "gaps"):
        step = 2 if kind == "gaps" else 1
        wide = np.full((*shape[:-1], 2 * shape[-1] + 3), POISON, np.float32)
        wide[..., : step * shape[-1] : step] = values
        return wide[..., : step * shape[-1] : step]
    if kind == "dtype":
        return values.astype(draw(st.sampled_from([np.float16, np.float64, np.int32])))
    return values[..., ::-1] if kind == "backwards" else values


@SEVERAL
@given(data=st.data())
def test_products_are_right_or_refused(dispatcher: Dispatcher, data: st.DataObject) -> None:
    m, n, k = (data.draw(st.integers(0, 4)) for _ in range(3))
    batch = data.draw(st.sampled_from([None, None, 1, 2, 3]))
    a, b = data.draw(matrices(m, k, batch)), data.draw(matrices(k, n, data.draw(st.sampled_from([None, batch]))))
    words: list[tuple[Any, Any, int]] = [
        ("add", "none", 0),
        ("add", "relu", 1),
        ("multiply", "none", 2),
        ("add", "gelu", 5),
    ]
    d_op, activation, count = data.draw(st.sampled_from(words))
    ds = [data.draw(matrices(data.draw(st.sampled_from([m, m, 1])), n, batch)) for _ in range(count)]
    out = data.draw(st.none() | matrices(m, n, batch))
    before = None if out is None else np.array(out)
    try:
        product = dispatcher.gemm(a, b, out=out, ds=ds, d_op=d_op, activation=activation)
    except (ArrayError, NoKernelError, ProblemError) as error:
        says_what_is_allowed(error)
        if out is not None:
            np.testing.assert_array_equal(out, before)
        return
    expected = a.astype(np.float64) @ b
    for d in ds:
        expected = expected * d if d_op == "multiply" else expected + d
    expected = np.maximum(expected, 0) if activation == "relu" else expected
    # An out of three dimensions makes a batch of operands that all share; extents of 1 in front of all others of an
    # operand are no extents of the result.
    expected = expected.reshape(expected.shape[max(expected.ndim - product.ndim, 0) :])
    np.testing.assert_array_equal(product, np.broadcast_to(expected, product.shape))
    assert out is None or product is out


@SEVERAL
@given(data=st.data())
def test_groups_are_right_or_refused(dispatcher: Dispatcher, data: st.DataObject) -> None:
    shapes = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 3), max_size=3))
    a = [data.draw(matrices(m, k, None)) for m, _, k in shapes]
    b = [data.draw(matrices(k, n, None)) for _, n, k in shapes]
    if b and data.draw(st.integers(0, 9)) == 0:
        b.pop()
    try:
        products = dispatcher.grouped_gemm(a, b)
    except (ArrayError, NoKernelError, ProblemError) as error:
        says_what_is_allowed(error)
        return
    assert len(products) == len(shapes)
    for one, left, right in zip(products, a, b, strict=True):
        np.testing.assert_array_equal(one, left.astype(np.float64) @ right)
