from __future__ import annotations

from kernelwright.pants import engine
from pants.engine.fs import CreateDigest, FileContent


def test_requests_for_files_have_hashes_of_their_own() -> None:
    assert engine.create_files is not None  # importing the module is what makes them so
    requests = [CreateDigest([FileContent("a", b"%d" % n)]) for n in range(100)]
    assert len({hash(request) for request in requests}) == 100
    assert hash(CreateDigest([FileContent("a", b"7")])) == hash(requests[7])
