from __future__ import annotations

import subprocess
import sys

from kernelwright.pants import daemon

_ASK = """
import gc, resource, runpy, sys
if sys.argv[2] == "tuned":
    runpy.run_path(sys.argv[1])["tune"]()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x" * (20 << 20))
print(gc.get_threshold()[0], resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def young_objects_and_page_faults(state: str) -> tuple[int, int]:
    """How many young objects make a collection, and the page faults of an object of 20 MiB that is not the first.

    Of a new process, whose memory has no history.
    """
    said = subprocess.check_output([sys.executable, "-c", _ASK, str(daemon.__file__), state], text=True)
    young, faults = said.split()
    return int(young), int(faults)


def test_memory_is_kept_for_the_next_run() -> None:
    assert young_objects_and_page_faults("plain")[1] > 4000
    assert young_objects_and_page_faults("tuned")[1] < 100


def test_garbage_is_collected_less_often() -> None:
    assert young_objects_and_page_faults("tuned")[0] > 50 * young_objects_and_page_faults("plain")[0]
