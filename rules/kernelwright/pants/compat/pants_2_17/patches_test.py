from __future__ import annotations

import sys

import pytest

if sys.version_info >= (3, 11):
    pytest.skip("of Pants 2.17", allow_module_level=True)

from kernelwright.pants.compat.pants_2_17 import patches
from pants.engine.fs import CreateDigest, FileContent


def test_requests_for_files_have_hashes_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CreateDigest, "__hash__", CreateDigest.__hash__)  # and back again
    patches.tune_process()
    requests = [CreateDigest([FileContent("a", b"%d" % n)]) for n in range(100)]
    assert len({hash(request) for request in requests}) == 100
    assert hash(CreateDigest([FileContent("a", b"7")])) == hash(requests[7])
