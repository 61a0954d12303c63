from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kernelwright.arch import load
from kernelwright.codegen.resources.measured.tables import Timing, read_table
from kernelwright.tile_engine.problems.linear_layers import linear_layers
from kernelwright.tile_engine.problems.models import models
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.analysis import timed
from kernelwright.tile_engine.results.csv_file import CsvFile, read_columns, read_rows, write_best
from kernelwright.tile_engine.results.junit import write_junit
from kernelwright.tile_engine.results.records import record_of, with_rates
from kernelwright.tile_engine.results.row import Row, Table

GEMM = measurable("gemm")
RECORD = GEMM.read({"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"})
TABLE = Table(GEMM, load("sm_90a"), "cuda:0", "2026-11-22", "host=a")


def report(**fields: Any) -> dict[str, Any]:
    return {"kernel": "id", "status": "ok", "reason": "", "error": 0.5, "non_zero": 3, **fields}


def row(**fields: Any) -> Row:
    return TABLE.row("name", 7, RECORD, report(**fields), selected=True)


def test_a_timed_row_has_rates_and_its_share_of_the_roofline() -> None:
    made = row(latency_ms=[1.0, 0.9, 1.2])
    assert list(made) == list(TABLE.columns)
    assert (made["kernel"], made["problem_idx"], made["m"], made["dtype"]) == ("name", 7, 4096, "bf16")
    assert made["selected"] == "1"
    assert (made["latency_ms"], made["latency_min_ms"], made["latency_max_ms"]) == ("1", "0.9", "1.2")
    assert float(made["tflops"]) == pytest.approx(2 * 4096**3 / 1e-3 / 1e12, rel=1e-4)
    assert float(made["bandwidth_gb_s"]) == pytest.approx(3 * 2 * 4096**2 / 1e-3 / 1e9, rel=1e-4)
    peak = 4096 * 132 * 1.83e9
    assert float(made["roofline"]) == pytest.approx(2 * 4096**3 / peak / 1e-3, rel=1e-3)


def test_the_report_on_counts_reads_timed_rows(tmp_path: Path) -> None:
    made = [row(latency_ms=[1.0, 0.9, 1.2]), {**row(status="wrong"), "latency_ms": "1"}]
    with CsvFile(tmp_path / "t.csv", TABLE.columns, append=False) as file:
        for one in made:
            file.write(one)
    (timing,) = read_table(tmp_path / "t.csv")
    assert isinstance(timing, Timing) and (timing.kernel, timing.identity, timing.us) == ("name", "id", 1000)
    assert timing.tflops == float(made[0]["tflops"]) and timing.cells["roofline"] == made[0]["roofline"]


def test_a_row_of_a_processor_has_the_roof_of_the_cores_of_its_process() -> None:
    record = GEMM.read({"m": 4096, "n": 4096, "k": 4096, "dtype": "fp32"})
    made = Table(GEMM, load("x86_64_v3"), "cpu", "2026-11-22", units=2).row(
        "name", 7, record, report(latency_ms=[1000.0, 900.0, 1200.0]), selected=True
    )
    assert made["units"] == 2 and row(latency_ms=[1.0, 0.9, 1.2])["units"] == 132
    assert float(made["roofline"]) == pytest.approx(2 * 4096**3 / (32 * 2 * 3.5e9), rel=1e-3)


def test_a_row_names_the_model_and_the_layer() -> None:
    model = next(one for one in models() if one.name == "Llama 3 8B")
    layer = next(iter(linear_layers(model)))
    made = TABLE.row("name", 0, GEMM.read({"m": 3, "n": layer.n, "k": layer.k}), report(), selected=False)
    assert made["model"] and made["layer"]
    first = next(
        (one.name, part.name)
        for one in models()
        for part in linear_layers(one)
        if (part.n, part.k) == (layer.n, layer.k)
    )
    assert (made["model"], made["layer"]) == first
    other = TABLE.row("name", 0, GEMM.read({"m": 3, "n": 5, "k": 7}), report(), selected=False)
    assert (other["model"], other["layer"]) == ("", "")


def test_a_row_without_a_time_says_why_and_counts_instructions() -> None:
    made = row(status="wrong", reason="far\n off", instructions={"matrix": 4, "all": 9})
    assert (made["latency_ms"], made["status"], made["reason"], made["error"]) == ("", "wrong", "far off", 0.5)
    assert made["instructions"] == "matrix=4;all=9"


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    columns = ["kernel", "problem_idx", "latency_ms", "selected", "status", "identity", "arch"]
    path.write_bytes(gzip.compress(f"{','.join(columns)}\nname,7,1.5,,ok,id,x\ntorn".encode()))
    (only_row,) = read_rows(path)
    assert (only_row["kernel"], only_row["problem_idx"]) == ("name", "7") and read_columns(path) == columns
    for data in (b"no gzip", gzip.compress(b"name")[:-4]):
        path.write_bytes(data)
        with pytest.raises(ValueError, match=r"t\.csv\.gz is no CSV file"):
            read_rows(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"problem_idx": "x"}, "row 0: problem_idx is 'x'"),
        ({"problem_idx": ""}, "row 0: problem_idx is ''"),
        ({"problem_idx": "-1"}, "row 0: problem_idx is '-1'"),
        ({"latency_ms": "nan"}, "row 0: latency_ms is 'nan'"),
        ({"latency_ms": "1,2"}, "row 0 has not one cell for each column"),
        ({"latency_ms": "inf"}, "row 0: latency_ms is 'inf'"),
    ],
)
def test_cells_that_are_no_numbers_are_refused(change: dict[str, str], why: str, tmp_path: Path) -> None:
    good = {"kernel": "a", "problem_idx": "1", "latency_ms": "1", "selected": "", "status": "ok"}
    good |= {"identity": "i", "arch": "x"}
    cells = {**good, **change}
    (tmp_path / "t.csv").write_text(f"{','.join(cells)}\n{','.join(cells.values())}\n")
    with pytest.raises(ValueError, match=why):
        read_rows(tmp_path / "t.csv")


def test_rates_that_a_row_lacks_follow_from_its_time() -> None:
    whole = {key: str(value) for key, value in row(latency_ms=[1.0, 0.9, 1.2]).items()}
    bare = {**whole, "tflops": "", "bandwidth_gb_s": ""}
    failed = {**bare, "latency_ms": ""}
    assert with_rates([bare, whole, failed], GEMM) == [whole, whole, failed]
    assert record_of(GEMM, whole) == RECORD


def test_the_fastest_kernels_become_a_table(tmp_path: Path) -> None:
    made = {key: str(value) for key, value in row(latency_ms=[1.0, 0.9, 1.2]).items()}
    slow = {**made, "kernel": "slow", "identity": "id2", "latency_ms": "4"}
    times = timed([{**made, "selected": ""}, slow, {**made, "problem_idx": "8", "selected": ""}])
    write_best(tmp_path / "best.csv", times, GEMM.columns)
    first, second = csv.DictReader((tmp_path / "best.csv").open())
    assert (first["kernel"], first["m"], first["selected"], first["selected_share"]) == (
        "name",
        "4096",
        "slow",
        "0.2500",
    )
    assert (second["problem_idx"], second["identity"], second["selected_ms"]) == ("8", "id", "")


def test_a_file_is_continued_only_when_asked_and_a_torn_line_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "new/t.csv"
    with CsvFile(path, TABLE.columns, append=False) as file:
        file.write(row())
    with pytest.raises(ValueError, match="exists; add --append or --resume"):
        CsvFile(path, TABLE.columns, append=False)
    with path.open("a") as torn:
        torn.write("name,8,40")
    assert len(read_rows(path)) == 1
    with CsvFile(path, TABLE.columns, append=True) as file:
        file.write(row(reason='commas, "quotes"'))
    assert [one["reason"] for one in read_rows(path)] == ["", 'commas, "quotes"']


def test_two_runs_do_not_write_one_file(tmp_path: Path) -> None:
    with (
        CsvFile(tmp_path / "t.csv", TABLE.columns, append=True) as file,
        pytest.raises(ValueError, match=r"another run writes .*t\.csv; wait for its end"),
    ):
        file.write(row())
        CsvFile(tmp_path / "t.csv", TABLE.columns, append=True)
    with CsvFile(tmp_path / "t.csv", TABLE.columns, append=True) as file:
        file.write(row())
    assert len(read_rows(tmp_path / "t.csv")) == 2


def test_a_file_of_other_columns_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    with pytest.raises(ValueError, match="has other columns"):
        CsvFile(path, TABLE.columns, append=True)


def test_junit_counts_failures_and_refusals(tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    write_junit(path, [row(), row(status="refused", reason="k"), row(status="timeout", reason="no answer")])
    (suite,) = ElementTree.parse(path).getroot()
    assert suite.attrib == {"name": "problem 7", "tests": "3", "failures": "1", "skipped": "1"}
    assert [failure.attrib for failure in suite.iter("failure")] == [{"message": "no answer", "type": "timeout"}]
