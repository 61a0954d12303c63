from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    pytest.skip("of Pants 2.17", allow_module_level=True)

from kernelwright.pants.compat.pants_2_17 import patches
from pants.engine.fs import CreateDigest, FileContent

_ASK = """
import gc, resource, sys
sys.path.insert(0, sys.argv[1])
from kernelwright.pants.compat.pants_2_17 import patches
if sys.argv[2] == "tuned":
    patches.tune_process()
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    bytearray(b"x" * (20 << 20))
print(gc.get_threshold()[0], resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def new_objects_and_page_faults(state: str) -> tuple[int, int]:
    """How many new objects start the collector, and the page faults of an object of 20 MiB that is not the first.

    Both in a new process, whose memory has no history.
    """
    rules = Path(str(patches.__file__)).parents[4]
    said = subprocess.check_output([sys.executable, "-c", _ASK, str(rules), state], text=True)
    objects, faults = said.split()
    return int(objects), int(faults)


def test_memory_is_kept_for_the_next_run() -> None:
    assert new_objects_and_page_faults("plain")[1] > 4000
    assert new_objects_and_page_faults("tuned")[1] < 100


def test_garbage_is_collected_less_often() -> None:
    assert new_objects_and_page_faults("tuned")[0] > 50 * new_objects_and_page_faults("plain")[0]


def test_requests_for_files_have_hashes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateDigest, "__hash__", CreateDigest.__hash__)  # and back again
    patches.hash_file_requests()
    requests = [CreateDigest([FileContent("a", b"%d" % n)]) for n in range(100)]
    assert len({hash(request) for request in requests}) == 100
    assert hash(CreateDigest([FileContent("a", b"7")])) == hash(requests[7])
