from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from measured_library import SHIPPED, TEST, describe


def _manifest(*names: str) -> dict[str, Any]:
    kernels = [{"name": name} for name in names]
    return {"arch": "sm_90a", "kernels": kernels, "toolchains": {"cuda": "nvcc"}, "sha256": "0f"}


def test_only_exactly_the_shipped_kernels_are_the_shipped_library(tmp_path: Path) -> None:
    (tmp_path / "gemm.json").write_text(json.dumps({"sm_90a": {"kernels": {"one": "…", "two": "…"}}}))
    (tmp_path / "convolution.json").write_text(json.dumps({"sm_90a": {"kernels": {"four": "…"}}, "gfx942": {}}))
    library = describe(_manifest("two", "one"), tmp_path)
    assert library == {"kind": SHIPPED, "arch": "sm_90a", "kernels": 2, "toolchains": {"cuda": "nvcc"}, "sha256": "0f"}
    assert describe(_manifest("four"), tmp_path)["kind"] == SHIPPED
    assert describe(_manifest("one"), tmp_path)["kind"] == TEST
    assert describe(_manifest("one", "two", "four"), tmp_path)["kind"] == TEST
