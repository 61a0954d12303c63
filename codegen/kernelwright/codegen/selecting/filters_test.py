from __future__ import annotations

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.selecting.filters import FilterError, apply_filter, attributes, compile_filter, view
from kernelwright.codegen.selecting.sets import expand_set

KERNELS = expand_set("default", archs.load("gfx942")).kernels


@pytest.mark.parametrize(
    "expression",
    [
        "c.tile_n >= 128 and c.pipeline == 'compv3'",
        "c.dtype in ('fp16', 'bf16') and not c.persistent",
        "c.tile_m * c.tile_n == 128 * 128 or c.layout == 'rrr'",
        "(c.tile_m if c.pad_m else 0) > 64",
        "'fp8' in c.name and 64 <= c.tile_k <= 128",
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
    ],
)
def test_everything_else_is_refused(expression: str) -> None:
    with pytest.raises(FilterError):
        apply_filter(expression, KERNELS)


def test_errors_help() -> None:
    with pytest.raises(FilterError, match=r"unknown attribute 'tile_o' \(did you mean c\.tile_[mnk]\?\)"):
        compile_filter("c.tile_o == 1")
    with pytest.raises(FilterError, match="Call is not allowed"):
        compile_filter("abs(c.tile_m) == 1")
    with pytest.raises(FilterError, match=f"matches none of {len(KERNELS)} kernels"):
        apply_filter("c.tile_m == 1", KERNELS)


def test_the_view_is_flat_and_complete() -> None:
    seen = view(KERNELS[0])
    assert set(seen) == set(attributes(["gemm"]))
    assert all(type(value) in (int, bool, str) for value in seen.values())
