from __future__ import annotations

import pytest

from kernelwright.codegen.operations.convolution.instances import FILES, parse_instances, read_instances
from kernelwright.codegen.violations import SpecError

HEAD = "# layouts dtypes tile waves warp tile pipeline scheduler vectors specialization further fields\n"
LINE = "nhwgc,ndhwgc fp16,bf16 64x64x32 1x1x1 32x32x16 compv1 intrawave 8,8,4 default num_groups_to_merge=2 two_stage\n"


def test_a_line_is_a_kernel_for_each_layout_and_dtype() -> None:
    specs = list(parse_instances(HEAD + "\n# a comment\n" + LINE, "backward_weight", "x.conf"))
    assert [(spec.layout, spec.dtype) for spec in specs] == [
        ("nhwgc", "fp16"),
        ("nhwgc", "bf16"),
        ("ndhwgc", "fp16"),
        ("ndhwgc", "bf16"),
    ]
    assert {(spec.tile.k, spec.vector.c, spec.num_groups_to_merge, spec.two_stage) for spec in specs} == {
        (32, 4, 2, True)
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("# layouts dtypes size\n", r"x.conf:1: no column is called 'size'"),
        (HEAD + "nhwgc fp16 64x64\n", r"x.conf:2: 'nhwgc fp16 64x64' is no kernel"),
        (HEAD + LINE.replace("64x64x32", "64x64"), r"x.conf:2: .* is no kernel"),
        (HEAD + LINE.replace("compv1", "compv9"), r"x.conf:2: .* is no kernel: .*compv9"),
        (HEAD + LINE.replace("two_stage", "three_stage"), r"x.conf:2: .* is no kernel: unknown field 'three_stage'"),
    ],
)
def test_errors_say_where(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        list(parse_instances(text, "forward", "x.conf"))


@pytest.mark.parametrize("name", ["profiler", "tests"])
def test_no_instance_is_written_twice(name: str) -> None:
    specs = [spec for file in FILES for spec in read_instances("ck_tile", name, file)]
    assert len(set(specs)) == len(specs) == {"profiler": 2541 + 60, "tests": 563 + 18}[name]


def test_a_set_without_a_file_has_nothing() -> None:
    assert read_instances("cutlass", "profiler", "forward") == ()
