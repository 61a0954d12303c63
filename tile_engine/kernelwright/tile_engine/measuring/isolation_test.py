"""Children that answer, hang, crash and die at the start, each as a small program in place of the worker."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from kernelwright.tile_engine.measuring.isolation import CRASHED, TIMED_OUT, Child
from kernelwright.tile_engine.measuring.settings import Settings

# Answers for each kernel; "hang" and "crash" do what they say at their launch.
WORKER = """
import json, os, signal, subprocess, sys, time
request = json.load(sys.stdin)
for kernel in request["kernels"]:
    print(json.dumps({"begin": kernel}), flush=True)
    if kernel == "hang":
        subprocess.Popen(["sleep", "1000"])
        time.sleep(1000)
    if kernel == "crash":
        print("about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    print(json.dumps({"kernel": kernel, "status": "ok", "pid": os.getpid()}), flush=True)
    if kernel == "spoil":
        raise SystemExit
    if kernel == "late":
        os.kill(os.getpid(), signal.SIGSEGV)
"""


def reports(program: str, kernels: list[str], timeout_s: float = 5.0) -> list[dict[str, Any]]:
    command = (sys.executable, "-c", program)
    child = Child(Path("libx.so"), "cpu", "gemm", Settings(), timeout_s, command)
    return list(child.reports({"m": 1}, kernels))


def test_one_process_measures_a_batch() -> None:
    rows = reports(WORKER, ["a", "b", "c"])
    assert [report["kernel"] for report in rows] == ["a", "b", "c"]
    assert len({report["pid"] for report in rows}) == 1


def test_a_hang_costs_one_kernel_and_its_time() -> None:
    start = time.monotonic()
    rows = reports(WORKER, ["a", "hang", "b"], timeout_s=1.0)
    assert [(report["kernel"], report["status"]) for report in rows] == [("a", "ok"), ("hang", TIMED_OUT), ("b", "ok")]
    assert rows[1]["reason"] == "no answer in 1 s"
    assert time.monotonic() - start < 30  # nobody waits for the 1000 s of the child's own child


def test_a_crash_costs_one_kernel_and_says_how_it_ended() -> None:
    rows = reports(WORKER, ["crash", "a", "b"])
    assert [(report["kernel"], report["status"]) for report in rows] == [("crash", CRASHED), ("a", "ok"), ("b", "ok")]
    assert rows[0]["reason"] == "signal SIGSEGV: about to crash"


def test_a_process_that_ends_by_itself_leaves_the_others_to_the_next() -> None:
    rows = reports(WORKER, ["a", "spoil", "b", "c"])
    assert [(report["kernel"], report["status"]) for report in rows] == [
        (name, "ok") for name in ("a", "spoil", "b", "c")
    ]
    assert len({report["pid"] for report in rows[:2]}) == len({report["pid"] for report in rows[2:]}) == 1
    assert rows[1]["pid"] != rows[2]["pid"]


def test_a_crash_between_kernels_costs_the_next() -> None:
    rows = reports(WORKER, ["late", "a", "b"])
    assert [(report["kernel"], report["status"]) for report in rows] == [("late", "ok"), ("a", CRASHED), ("b", "ok")]


def test_a_process_that_ends_without_a_report_costs_its_first_kernel() -> None:
    assert [report["status"] for report in reports("raise SystemExit", ["a", "b"])] == [CRASHED, CRASHED]


def test_a_worker_that_cannot_start_says_why_for_each_kernel() -> None:
    rows = reports("raise SystemExit('no such library')", ["a", "b"])
    assert [report["status"] for report in rows] == [CRASHED, CRASHED]
    assert {report["reason"] for report in rows} == {"exit code 1: no such library"}
