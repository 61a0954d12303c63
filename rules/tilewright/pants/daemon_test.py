from __future__ import annotations

import subprocess
import sys

_ASK = """
import gc, resource
from tilewright.pants import daemon
if {tuned}:
    daemon.tune()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x" * (20 << 20))
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before, gc.get_threshold()[0])
"""


def ask(tuned: bool) -> tuple[int, int]:
    """Page faults of an object of 20 MiB that is not the first one, and how many young objects make a collection."""
    said = subprocess.check_output(
        [sys.executable, "-c", _ASK.format(tuned=tuned)], text=True, env={"PYTHONPATH": ":".join(sys.path)}
    )
    faults, young = said.split()
    return int(faults), int(young)


def test_memory_is_kept_for_the_next_run() -> None:
    plain, _ = ask(tuned=False)
    tuned, _ = ask(tuned=True)
    assert plain > 4000
    assert tuned < 100


def test_garbage_is_collected_less_often() -> None:
    assert ask(tuned=True)[1] > 50 * ask(tuned=False)[1]
