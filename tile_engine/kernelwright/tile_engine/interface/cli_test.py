"""The command on the library of the examples."""

from __future__ import annotations

import csv
import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.tile_engine.bench import measure
from kernelwright.tile_engine.interface import bench_command
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.problems.registry import KEYS, operation_of, problems
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import read_rows
from kernelwright.tile_engine.results.row import MEASURED, Row

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = os.environ.get("KERNELWRIGHT_KERNELS", str(ROOT / "examples/gemm/kernels"))
FAST = [
    "--duration",
    "0.001",
    "--rounds",
    "2",
    "--kernels",
    "gemm_fp32_rcr_packed_*_14x32x1",
    "--kernels",
    "*fp32_rrr*",
]
FAST += ["--kernels", "gemm_fp32_rcr_packed_*_6x16x1"]


def bench(tmp_path: Path, *options: str) -> int:
    problems = tmp_path / "p.json"
    problems.write_text(
        json.dumps([{"m": 33, "n": 17, "k": 65, "dtype": "fp32"}, {"m": 4, "n": 4, "k": 4, "dtype": "fp32"}])
    )
    files = ["--problems", str(problems), "--output", str(tmp_path / "t.csv"), "--junit", str(tmp_path / "t.xml")]
    return main(["bench", "--library", LIBRARY, *files, *FAST, *options])


def test_every_kernel_is_a_row_of_every_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--tags", "run=1") == 0
    rows = read_rows(tmp_path / "t.csv")
    assert {row["problem_idx"] for row in rows} == {"0", "1"}
    right = [row for row in rows if row["status"] == "ok"]
    assert right and all(float(row["latency_ms"]) > 0 and float(row["error"]) <= 1 for row in right)
    assert {row["problem_idx"] for row in rows if row["selected"]} <= {"0", "1"}
    assert all(row["rank"] for row in right) and all(row["rank"] == "1" for row in rows if row["selected"])
    assert len({(row["problem_idx"], row["rank"]) for row in right}) == len(right)
    assert all(row["tags"] == "run=1" and row["device"] == "cpu" for row in rows)
    assert all("serves gemm" in row["reason"] for row in rows if row["status"] == "refused")
    said = capsys.readouterr().err
    assert f"{len(rows)} rows written to {tmp_path / 't.csv'}: " in said and f"{len(right)} ok" in said


def test_the_dispatchers_choices_are_evaluated_without_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t.csv"
    assert bench(tmp_path, "--kernels", "gemm_fp32_rcr_*") == 0
    assert main(["evaluate", "--table", str(table), "--table", str(table), "--json"]) == 0
    score = json.loads(capsys.readouterr().out)["dispatcher"]
    assert score["problems"] == 4 and 0 < score["mean"] <= score["top"]["3"] <= 1
    assert main(["evaluate", "--table", str(table), "--model", "m.json"]) == 2
    assert "add --library" in capsys.readouterr().err
    unmarked = [{**row, "selected": ""} for row in read_rows(table)]
    with table.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(unmarked[0]))
        writer.writeheader()
        writer.writerows(unmarked)
    assert main(["evaluate", "--table", str(table)]) == 2
    assert "no row of the tables is marked as selected" in capsys.readouterr().err


def test_a_table_becomes_a_page(tmp_path: Path) -> None:
    assert bench(tmp_path) == 0
    table, output = str(tmp_path / "t.csv"), tmp_path / "t.html"
    assert main(["report", table, "--against", table, "--output", str(output), "--png", str(tmp_path / "png")]) == 0
    assert "Since t.csv" in output.read_text() and (tmp_path / "png/roofline.png").is_file()
    assert "all problems</dt><dd>batch 1, layout rcr, dtype fp32" in output.read_text()
    assert main(["report", table, "--library", LIBRARY, "--output", str(output)]) == 0
    assert "compile s</th>" in output.read_text()
    assert main(["report", str(tmp_path / "none.csv"), "--output", str(output)]) == 2
    assert main(["report", table, "--csv", str(tmp_path / "best.csv"), "--output", str(output)]) == 0
    with (tmp_path / "best.csv").open(newline="") as file:
        assert [row["problem_idx"] for row in csv.DictReader(file)] == ["0", "1"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the columns (none) are of no table"),
        ("a,b\n1,2\n", "the columns a, b are of no table"),
        (None, "has no rows"),
    ],
)
def test_a_file_that_is_no_table_has_no_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    columns = ("kernel", "problem_idx", *measurable("gemm").columns, *MEASURED)
    (tmp_path / "t.csv").write_text(",".join(columns) + "\n" if text is None else text)
    assert main(["report", str(tmp_path / "t.csv"), "--output", str(tmp_path / "t.html")]) == 2
    assert said in capsys.readouterr().err


def test_a_run_resumes_where_it_was_stopped(tmp_path: Path) -> None:
    assert bench(tmp_path) == 0
    path = tmp_path / "t.csv"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:20])
    assert bench(tmp_path, "--resume") == 0
    rows = read_rows(path)
    assert len(rows) == len(lines) - 1 == len({(row["problem_idx"], row["identity"]) for row in rows})


def test_a_file_of_other_problems_is_not_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path) == 0
    (tmp_path / "t.csv").write_text((tmp_path / "t.csv").read_text().replace(",33,17,65,", ",33,17,64,"))
    assert bench(tmp_path, "--resume") == 2
    assert "t.csv holds other problems (number 0 differs)" in capsys.readouterr().err


def test_a_run_that_is_interrupted_keeps_its_rows_and_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def interrupted(*given: Any) -> Iterator[Row]:
        yield from itertools.islice(measure(*given), 2)
        raise KeyboardInterrupt

    monkeypatch.setattr(bench_command, "measure", interrupted)
    assert bench(tmp_path) == 1
    said = capsys.readouterr().err
    assert "2 rows written to" in said and "--resume continues" in said and "error" not in said
    first = read_rows(tmp_path / "t.csv")
    assert len(first) == 2 and (tmp_path / "t.xml").read_text().count("<testcase") == 2
    monkeypatch.setattr(bench_command, "measure", measure)
    assert bench(tmp_path, "--resume") == 0
    rows = read_rows(tmp_path / "t.csv")
    assert rows[:2] == first and len(rows) == len({(row["problem_idx"], row["identity"]) for row in rows}) > 2


def test_bad_input_says_what_is_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--ignore-kernels", "*") == 2
    assert "gemm kernels of the library matches; names: " in capsys.readouterr().err
    assert main(["bench", "--library", LIBRARY, "--problems", "nothing", "--output", "x.csv"]) == 2
    assert "'nothing' is neither a file nor a key" in capsys.readouterr().err
    assert bench(tmp_path, "--tags", "host") == 2 and bench(tmp_path, "--kernel-timeout", "0") == 2
    said = capsys.readouterr().err
    assert "--tags is 'host'; write KEY=VALUE" in said and "'--kernel-timeout': 0.0 is not in the range" in said
    assert bench(tmp_path, "--kernels-file", "none.txt") == 2
    assert capsys.readouterr().err == "error: 'none.txt': No such file or directory; check the path\n"


def test_problem_sets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["problems"]) == 0
    assert capsys.readouterr().out.split() == list(KEYS)
    assert main(["problems", "--json"]) == 0 and json.loads(capsys.readouterr().out) == list(KEYS)
    assert main(["problems", "gemm-held-out-bf16"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert (header, first.rpartition(",")[2]) == ("m,n,k,batch,layout,dtype,dtype_c", "bf16")


def test_problems_of_few_operations_become_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["problems", "conv-tuning-forward-2d-fp32", "--most-operations", "1e8", "--every", "2", "--json"]) == 0
    text = capsys.readouterr().out
    listed, operation = json.loads(text)["problems"], measurable("convolution")
    bounded = [one for one in problems(operation, "conv-tuning-forward-2d-fp32") if operation.flops(one) <= 1e8]
    assert listed == bounded[::2] and 2 < len(listed) < len(bounded)
    (tmp_path / "p.json").write_text(text)
    assert problems(operation, str(tmp_path / "p.json")) == tuple(listed)
    assert operation_of(str(tmp_path / "p.json")) == "convolution"
    assert main(["problems", str(tmp_path / "p.json"), "--json"]) == 0
    assert capsys.readouterr().out == text
    assert main(["problems", "gemm-tuning-fp32", "--most-bytes", "1"]) == 2
    assert "no problem of gemm-tuning-fp32 has at most inf operations and 1 bytes" in capsys.readouterr().err


def test_a_variant_chooses_kernels_and_a_key_its_operation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(tmp_path, "--variant", "gemm_universal") == 0
    assert bench(tmp_path, "--variant", "forward", "--append") == 2
    capsys.readouterr()
    assert main(["problems", "conv-held-out-forward-2d-bf16"]) == 0
    assert capsys.readouterr().out.startswith("direction,n,c,k,")
    assert main(["problems", "--variant", "forwards", "x.json"]) == 2
    assert "did you mean 'forward'" in capsys.readouterr().err
