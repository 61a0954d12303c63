from __future__ import annotations

import time

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.selecting.filters import (
    FilterError,
    apply_filter,
    attributes,
    compile_expression,
    compile_filter,
    view,
)
from kernelwright.codegen.selecting.sets import expand_set

KERNELS = expand_set("gemm:default", archs.load("gfx942")).kernels


@pytest.mark.parametrize(
    "expression",
    [
        "c.tile_n >= 128 and c.pipeline == 'compv3'",
        "c.dtype in ('fp16', 'bf16') and not c.persistent",
        "c.tile_m * c.tile_n == 128 * 128 or c.layout == 'rrr'",
        "(c.tile_m if c.pad_m else 0) > 64",
        "'fp8' in c.name and 64 <= c.tile_k <= 128",
        "abs(c.tile_m - c.tile_n) > 64 or min(c.tile_m, c.tile_n, 64) < 64",
        "max(c.tile_m, c.tile_n) % 3 == 2 and 'bf16' not in c.name",
        "c.dtype in ['fp32'] or c.arch != 'gfx942' or -c.tile_m < -100",
    ],
)
def test_expressions_keep_what_they_say(expression: str) -> None:
    expected = [kernel for kernel in KERNELS if eval(expression, {"c": type("C", (), view(kernel))})]
    assert 0 < len(expected) < len(KERNELS)
    assert apply_filter(expression, KERNELS) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "c.__class__",
        "c.tile_m.__class__",
        "().__class__.__bases__",
        "__import__('os').system('true')",
        "open('/etc/passwd')",
        "c.name.upper()",
        "9 ** 9 ** 9 ** 9",
        "1 << 10 ** 9",
        "[x for x in (1, 2)]",
        "lambda: 1",
        "f'{c}'",
        "c.name[0]",
        "{'a': 1}",
        "(x := 1)",
        "d.tile_m == 1",
        "c.tile == 1",
        "c.tile_o == 1",
        "c.tile_m = 1",
        "",
        "c.tile_m ==",
        "\0",
        "(" * 500 + ")" * 500,
        "c.tile_m == 1 or " * 100 + "True",
        "1 / 0 == 1",
        "c.name < 3",
        "'a' * 10000000 == c.name",
        "'%1500000000d' % 1 == c.name",
        "'a' + 'b' == c.name",
        "[[[1] * 99] * 99] * 99 == 1",
        "[1, [2]] == 1",
        "c.tile_m == [1, 2]",
        "c.tile_m in [1] in [2]",
        "c.tile_m in [[1], 128]",
        "c.tile_m in 128",
        "c.tile_m in c.name",
        "c.tile_m is 128",
        "c",
        "c.tile_m == 128j",
        "c.name != b'x'",
        "c.tile_m == None",
        "min(c.tile_m) == 1",
        "min(*c.name) == 1",
        "abs(c.name) == 1",
        "max(1, key=2) == 1",
        "startswith(c.tile_m, 'a')",
        "abs.__self__",
        "1e308 * 10 ** 400 == 1",
        "-" * 900 + "1",
        "not " * 200 + "c.pad_m",
        "1" + "+1" * 400 + " == 401",
        "[" * 150 + "]" * 150,
    ],
)
def test_everything_else_is_refused(expression: str) -> None:
    with pytest.raises(FilterError):
        apply_filter(expression, KERNELS)


def test_errors_help() -> None:
    with pytest.raises(FilterError, match=r"unknown attribute 'tile_o' \(did you mean c\.tile_[mnk]\?\)"):
        compile_filter("c.tile_o == 1")
    with pytest.raises(FilterError, match="Call is not allowed, only numbers, texts, comparisons"):
        compile_filter("c.name.upper() == 'A'")
    with pytest.raises(FilterError, match="unknown function 'len'; allowed: abs, min, max, startswith, endswith"):
        compile_filter("len(c.name) == 1")
    with pytest.raises(FilterError, match="nested too deeply; allowed: 40 levels"):
        compile_filter("-" * 60 + "1")
    with pytest.raises(FilterError, match="mod takes numbers, not '%9d'"):
        apply_filter("'%9d' % 1 == c.name", KERNELS)
    with pytest.raises(FilterError, match=r"; c\.layout is .*rcr.*; c\.tile_m is \d+"):
        apply_filter("c.tile_m == 1 and c.layout == 'xyz'", KERNELS)
    with pytest.raises(FilterError, match=f"matches none of {len(KERNELS)} kernels"):
        apply_filter("c.tile_m == 1", KERNELS)


def test_the_view_is_flat_and_complete() -> None:
    seen = view(KERNELS[0])
    assert set(seen) == set(attributes(["gemm"]))
    assert all(type(value) in (int, bool, str) for value in seen.values())


def test_texts_begin_and_end() -> None:
    wanted = [kernel for kernel in KERNELS if kernel.name.startswith("gemm_fp16") and kernel.name.endswith("16")]
    assert 0 < len(wanted) < len(KERNELS)
    assert apply_filter("startswith(c.name, 'gemm_fp16') and endswith(c.name, '16')", KERNELS) == wanted


@pytest.mark.parametrize(
    "expression", ["9" * 400 + "*" + "9" * 400 + " > c.tile_m", "c.tile_m in (" + "1," * 400 + ")"]
)
def test_the_longest_expressions_are_quick(expression: str) -> None:
    start = time.process_time()
    matches = compile_filter(expression)
    for kernel in KERNELS:
        matches(kernel)
    assert time.process_time() - start < 2


def test_an_operation_may_filter_fields_before_there_are_kernels() -> None:
    keeps = compile_expression("c.rows > 2 and c.word in ('a', 'b')", ("rows", "word"))
    assert keeps({"rows": 3, "word": "b"}) and not keeps({"rows": 2, "word": "b"})
    with pytest.raises(FilterError, match=r"unknown attribute 'row' .did you mean c.rows"):
        compile_expression("c.row > 2", ("rows", "word"))
