"""``kernelwright quality --measured``: tables as rocprof's documentation shows them, joined with counts of kernels."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.resources import quality
from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.codegen.resources.measured.counted import counted
from kernelwright.codegen.resources.measured.tables import BENCH
from kernelwright.codegen.resources.testing.loop import LOOP
from kernelwright.files.counts.instruction_set import instruction_set

IDENTITY = "0123456789abcdef" * 4
FUNCTION = f"kw_kernel_{IDENTITY[:16]}_gemm"
SUM = f"kw_kernel_{IDENTITY[:16]}_sum"
WAVES, TURNS = 512, 64
V3 = (
    *("Correlation_Id", "Dispatch_Id", "Agent_Id", "Queue_Id", "Process_Id", "Thread_Id", "Grid_Size", "Kernel_Id"),
    *("Kernel_Name", "Workgroup_Size", "LDS_Block_Size", "Scratch_Size", "VGPR_Count", "Accum_VGPR_Count"),
    *("SGPR_Count", "Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"),
)
# Of a launch: a turn of LOOP has a matrix instruction of 32 clocks, a vector one and 12 clocks of conflicts.
FIRST = {"SQ_WAVES": WAVES, "SQ_INSTS_MFMA": WAVES * TURNS, "SQ_INSTS_VALU": WAVES * (2 * TURNS + 3)}
SECOND = {"SQ_LDS_BANK_CONFLICT": 12 * WAVES * TURNS, "SQ_VALU_MFMA_BUSY_CYCLES": 32 * WAVES * TURNS}
Shown = Callable[..., tuple[int, str, str]]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    text = LOOP.format(shift=4, rest="s_nop 0").replace("k_gemm", FUNCTION)
    counts = read_counts(text, [FUNCTION], instruction_set("gfx942"), 256, 4)
    kernel = {"name": "gemm_one", "identity": IDENTITY, "resources": {"vgpr": 64, "counts": counts}}
    folder = tmp_path / "library"
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"name": "gemm", "arch": "gfx942", "kernels": [kernel]}))
    return folder


@pytest.fixture
def run(library: Path, capsys: pytest.CaptureFixture[str]) -> Shown:
    def shown(*arguments: object) -> tuple[int, str, str]:
        code = quality.main([str(library), *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return shown


def written(path: Path, columns: Sequence[str], rows: Iterable[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, columns, restval="0", quoting=csv.QUOTE_NONNUMERIC)
        writer.writeheader()
        writer.writerows(rows)
    return path


def v3(
    path: Path, counters: Mapping[str, float], functions: Sequence[str] = (FUNCTION,) * 3, grid: int = 32768
) -> Path:
    """``counter_collection.csv`` of a program that launches ``functions``; the n-th takes 10 + n microseconds."""
    rows = [
        {"Dispatch_Id": n, "Agent_Id": "Agent 4", "Process_Id": 20, "Grid_Size": grid, "Kernel_Name": function,
         "Counter_Name": name, "Counter_Value": value, "Start_Timestamp": 1000, "End_Timestamp": 11000 + 1000 * n}
        for n, function in enumerate(functions) for name, value in counters.items()
    ]  # fmt: skip
    return written(path, V3, rows)


def row_of(text: str) -> dict[str, Any]:
    (row,) = json.loads(text)["libraries"][0]["kernels"]
    return dict(row)


def test_counters_of_several_passes_stand_beside_counts(tmp_path: Path, run: Shown) -> None:
    passes = [v3(tmp_path / "1.csv", FIRST), v3(tmp_path / "2.csv", SECOND)]
    code, out, error = run("--json", "--measured", *passes)
    assert code == 0, error
    row = row_of(out)
    measured = row["measured"]
    assert (measured["launches"], measured["us"], measured["waves"]) == (6, 11, WAVES)
    assert (measured["turns"], measured["helpers"]) == (WAVES * TURNS, {})
    assert measured["counters"]["SQ_INSTS_VALU"] == {
        "counted": 2, "measured": round(2 + 3 / TURNS, 3), "launch": FIRST["SQ_INSTS_VALU"],
    }  # fmt: skip
    conflicts = measured["counters"]["SQ_LDS_BANK_CONFLICT"]
    assert conflicts["counted"] == conflicts["measured"] == row["conflicts"] == 12
    assert measured["counters"]["SQ_WAVES"]["counted"] is None
    # LDS takes 96 clocks where the matrix core takes 32; 304 compute units of 4 SIMDs at 2.1 GHz, in 11 us.
    assert row["bound_share_percent"] == round(100 * 96 * WAVES * TURNS / (11e3 * 2.1 * 304 * 4), 1)
    assert row["measured_us"] == 11


def test_the_table_and_the_page_show_them_side_by_side(tmp_path: Path, run: Shown) -> None:
    asked = ("--measured", v3(tmp_path / "1.csv", {**FIRST, **SECOND}))
    _, out, _ = run(*asked)
    assert f"gemm_one: 3 launches, 11.000 us, {WAVES} waves, {TURNS}.0 turns of each, " in out
    lines = [line.split() for line in out.splitlines()]
    assert ["SQ_LDS_BANK_CONFLICT", "12", "12", str(12 * WAVES * TURNS)] in lines
    assert ["SQ_WAVES", "–", "0.02", str(WAVES)] in lines
    _, out, _ = run("--html", *asked)
    row = ("SQ_LDS_BANK_CONFLICT", "12", "12", str(12 * WAVES * TURNS))
    assert f"<tr>{''.join(f'<td>{one}</td>' for one in row)}</tr>" in out


def test_without_matrix_counters_nothing_is_said_of_a_turn(tmp_path: Path, run: Shown) -> None:
    _, out, _ = run("--json", "--measured", v3(tmp_path / "1.csv", {"SQ_INSTS_VALU": 7}))
    row = row_of(out)
    assert row["measured"]["counters"]["SQ_INSTS_VALU"] == {"counted": 2, "measured": None, "launch": 7}
    assert row["bound_share_percent"] is None and row["measured"]["turns"] is None


def test_tables_of_the_first_rocprof_have_a_column_for_each_counter(tmp_path: Path, run: Shown) -> None:
    columns = "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size"
    names = (*columns.split(","), "sig", "obj", *FIRST, "DispatchNs", "BeginNs", "EndNs", "CompleteNs")
    launch = {**FIRST, "grd": 32768, "sig": "0x0", "obj": "0x7f2b4d282500", "BeginNs": 5000, "EndNs": 25000}
    for suffix in ("", ".kd", " [clone .kd]"):
        table = written(tmp_path / "results.csv", names, [{**launch, "KernelName": f"{FUNCTION}{suffix}"}])
        code, out, error = run("--json", "--measured", table)
        assert code == 0, error
        measured = row_of(out)["measured"]
        assert (measured["us"], measured["turns"]) == (20, WAVES * TURNS) and set(measured["counters"]) == set(FIRST)


def test_a_trace_has_times_and_other_functions_of_a_kernel_are_told_apart(tmp_path: Path, run: Shown) -> None:
    names = ("Kind", "Agent_Id", "Dispatch_Id", "Kernel_Name", "Start_Timestamp", "End_Timestamp", "Grid_Size_X")
    rows = [{"Kernel_Name": name, "Start_Timestamp": 0, "End_Timestamp": us * 1000} for name, us in
            ((FUNCTION, 8), (SUM, 2), (FUNCTION, 10))]  # fmt: skip
    _, out, _ = run("--json", "--measured", written(tmp_path / "trace.csv", names, rows))
    measured = row_of(out)["measured"]
    assert (measured["launches"], measured["us"], measured["helpers"]) == (2, 9, {SUM: 1})


def bench(path: Path, **cells: Any) -> Path:
    cells = {"identity": IDENTITY, "latency_ms": "0.05", "tflops": "200", "status": "ok", **cells}
    names = (*BENCH, "problem_idx", "m", "dtype", "units", "roofline")
    return written(path, names, [{"kernel": "gemm_one", "arch": "gfx942", "dtype": "fp16", "units": "304", **cells}])


def test_problems_of_the_tile_engine_have_their_share_of_the_bound(tmp_path: Path, run: Shown) -> None:
    failed = bench(tmp_path / "failed.csv", latency_ms="", tflops="", status="failed")
    asked = ("--measured", bench(tmp_path / "bench.csv", m=40, roofline="0.153"), "--measured", failed)
    _, out, _ = run("--json", *asked)
    row = row_of(out)
    (problem,) = row["measured"]["problems"]
    assert (problem["us"], problem["m"], problem["roofline"]) == (50, "40", "0.153")
    peak = 2048 * 304 * 2.1e9 / 1e12  # of which the LDS allows a third
    assert row["bound_share_percent"] == problem["bound_share_percent"] == round(100 * 200 * 3 / peak, 1)
    _, out, _ = run(*asked)
    assert "gemm_one: 1 problem, 45.9 % of its bound (lds)" in out and "m=40 dtype=fp16" in out


def test_rows_of_no_kernel_are_named(tmp_path: Path, run: Shown) -> None:
    others = [f"kw_kernel_{n:016x}_gemm" for n in range(7)]
    table = v3(tmp_path / "1.csv", {"SQ_WAVES": 4}, [FUNCTION, "void at::fill<float>(float*)", *others, others[0]])
    code, out, error = run("--measured", table)
    assert (code, out) == (2, "")
    assert "'void at::fill<float>(float*)' (1 rows), 'kw_kernel_0000000000000000_gemm' (2 rows)" in error
    assert "and 3 others; name the libraries that ran" in error
    code, _, error = run("--measured", bench(tmp_path / "2.csv", identity="f" * 64, kernel="gemm_two"))
    assert code == 2 and "'gemm_two' (1 rows)" in error


def test_passes_of_different_programs_do_not_compare(tmp_path: Path, run: Shown) -> None:
    first, other = v3(tmp_path / "1.csv", FIRST), {"SQ_INSTS_LDS": 1.0}
    same, larger = v3(tmp_path / "2.csv", other, [FUNCTION]), v3(tmp_path / "3.csv", other, [FUNCTION], grid=64)
    assert run("--measured", first, same)[0] == 0
    for tables, grids in (((first, larger), "64 (1 times)"), ((first, same, larger), "32768 (1 times), 64 (1 times)")):
        code, _, error = run("--measured", *tables)
        assert code == 2
        assert f"launches of the grids 32768 (3 times), and SQ_INSTS_LDS in those of {grids}; name tables" in error


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1,2\n", "its columns are a, b; allowed: counter_collection.csv"),
        ("", "no table that is known"),
        (f"Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,{FUNCTION},SQ_WAVES,many\n", "is 'many'; allowed: a"),
        (f"Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,{FUNCTION},SQ_WAVES,-1\n", "is '-1'; allowed: a"),
        (f"Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n{f'1,{FUNCTION},A,1' + chr(10)}" + f"1,{FUNCTION},A,1\n",
         "row 1: A of launch 1 is there twice"),
        ("Dispatch_Id,Kernel_Name,Counter_Name,Counter_Value\n1,a,A,1\n1,b,B,1\n", "launch 1 has two kernels"),
        (f"Kernel_Name,Start_Timestamp,End_Timestamp\n{FUNCTION},a,1\n", "Start_Timestamp 'a'"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_refused(tmp_path: Path, run: Shown, text: str, message: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    code, _, error = run("--measured", tmp_path / "x.csv")
    assert code == 2 and message in error
    assert run("--measured", tmp_path / "missing.csv")[0] == 2


def test_counts_are_in_the_units_of_the_counters() -> None:
    text = LOOP.format(shift=4, rest="s_nop 0")
    loop = read_counts(text, ["k_gemm"], instruction_set("gfx942"), 256, 4)["loop"]
    assert counted(loop) == {
        "SQ_INSTS_VALU": 2, "SQ_INSTS_MFMA": 1, "SQ_INSTS_SALU": loop["scalar"], "SQ_INSTS_LDS": 3, "SQ_INSTS_VMEM": 1,
        "SQ_VALU_MFMA_BUSY_CYCLES": 32, "SQ_ACTIVE_INST_VALU": 4, "SQ_LDS_BANK_CONFLICT": 12, "SQ_LDS_IDX_ACTIVE": 24,
    }  # fmt: skip
    assert counted({**loop, "conflict_cycles": None})["SQ_LDS_IDX_ACTIVE"] is None and counted(None) == {}
