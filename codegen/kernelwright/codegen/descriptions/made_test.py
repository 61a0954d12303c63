from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.descriptions.headers import header_text
from kernelwright.codegen.descriptions.made import headers, operations
from kernelwright.codegen.descriptions.tables import struct_bytes, table_text
from kernelwright.codegen.interface.cli import main
from kernelwright.problems.fields import Field, Header, Struct, Word

INCLUDE = Path(__file__).resolve().parents[4] / "dispatcher_cpp" / "include"


class SumOp(Word, c_type="kw_sum_op", prefix="KW_OP_", first=70):
    """What is summed."""

    SUM_OF_ROWS = "sum of rows", "one number per row"
    SUM_OF_COLUMNS = "sum of columns"


PROBLEM = Struct(
    "kw_sum_problem",
    (
        Field("rows columns", "int64_t", "of x, which is dense", least=1),
        Field("words", "uint32_t", "a long comment " * 12, 4),
    ),
    "y[i] = sum over j of x[i,j]",
    op=SumOp,
)


def test_the_checked_in_headers_are_current() -> None:
    command = "PYTHONPATH=arch:codegen python -m kernelwright.codegen headers dispatcher_cpp/include"
    for name, text in headers().items():
        assert (INCLUDE / name).read_text() == text, f"write them anew: {command}"


def test_no_table_is_left_of_an_operation_that_is_gone() -> None:
    written = {str(path.relative_to(INCLUDE)) for path in INCLUDE.glob("kernelwright/dispatcher/*/problem_fields.hpp")}
    assert written == {f"kernelwright/dispatcher/{name}/problem_fields.hpp" for name in operations()} and written


def test_the_command_writes_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["headers", str(tmp_path)]) == 0
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.h*")} == set(headers())
    assert capsys.readouterr().out.count("\n") == len(headers())


def test_a_header_says_what_its_description_says() -> None:
    text = header_text(Header("kernelwright/sum.h", "Sums.", ("kernelwright/abi.h",), (SumOp, PROBLEM)), "made.up")
    assert '#ifndef KERNELWRIGHT_SUM_H\n#define KERNELWRIGHT_SUM_H\n\n#include "kernelwright/abi.h"\n' in text
    assert "  KW_OP_SUM_OF_ROWS = 70, /* one number per row */\n  KW_OP_SUM_OF_COLUMNS = 71\n} kw_sum_op;\n" in text
    assert 'return op - 70u < 2u ? names[op - 70u] : "unknown";' in text
    assert "/* y[i] = sum over j of x[i,j] */\ntypedef struct kw_sum_problem {\n  kw_problem base;\n" in text
    assert "  int64_t rows, columns; /* >= 1; of x, which is dense */\n" in text
    above = text.index("  /* a long comment")
    assert text.index("*/\n  uint32_t words[4];") > above, "what is too long for a line stands above"
    assert max(map(len, text.splitlines())) <= 120


def test_a_table_has_ranges_and_sizes() -> None:
    text = table_text(Header("kernelwright/sum.h", "Sums.", (), (SumOp, PROBLEM)), "kernelwright/x.hpp", "made.up")
    assert "static_assert(sizeof(kw_sum_problem) == 40," in text
    row = '{"columns", offsetof(kw_sum_problem, columns), kInt64, 0, 1},'
    assert f"constexpr Field kSumProblemFields[] = {{\n    {row.replace('columns', 'rows')}\n    {row}\n" in text


def test_gaps_are_refused() -> None:
    gap = Struct("kw_gap", (Field("a", "uint32_t"), Field("b", "int64_t")))
    with pytest.raises(ValueError, match="kw_gap has padding; allowed: members that follow each other"):
        struct_bytes(gap)
