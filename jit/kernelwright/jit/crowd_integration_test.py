"""Many processes that fill one cache with real kernels, some of them killed: none loads what is not whole, none hangs.

Opt-in, minutes long: KERNELWRIGHT_CROWD=16 ./pants test jit:crowd
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelwright.codegen.testing.crowd import crowd
from kernelwright.dispatch import Device
from kernelwright.jit import Registry

pytestmark = pytest.mark.skipif("KERNELWRIGHT_CROWD" not in os.environ, reason="KERNELWRIGHT_CROWD is not set")

SPEC = {"tile": [12, 48, 32], "warp_tile": [6, 16, 1]}


def registry(cache: Path) -> Registry:
    made = Registry(Device("cpu", arch="x86_64_v3"), cache=cache)
    for dtype in ("fp32", "bf16", "fp16"):
        for layout in ("rrr", "rcr", "crr", "ccr"):
            made.add(SPEC, dtype=dtype, layout=layout, limits={"min_matrix_instructions": 1})
    return made


@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_fills_one_cache(tmp_path: Path, seed: int) -> None:
    processes = int(os.environ["KERNELWRIGHT_CROWD"])
    command = [sys.executable, "-P", __file__, str(tmp_path / "cache")]
    kills = 3 * processes
    logs = tmp_path / "logs"
    killed = crowd(command, logs, processes=processes, kills=kills, pause_s=0.5, seed=seed, timeout_s=900)
    ends = [log.read_text().splitlines()[-1:] for log in logs.iterdir()]
    loaded = {line for lines in ends for line in lines if line.startswith("loaded ")}
    assert killed > processes // 2 and len(loaded) == 1
    alone = registry(tmp_path / "other").build()
    (together,) = loaded
    assert Path(together.removeprefix("loaded ")).read_bytes() == alone.path.read_bytes()
    assert registry(tmp_path / "cache").missing() == ()


if __name__ == "__main__":
    dispatcher = registry(Path(sys.argv[1])).dispatcher(max_workers=2, progress=True)
    for size in (1, 7, 64):
        a, b = np.arange(size * 5.0, dtype=np.float32).reshape(size, 5), np.ones((5, 3), np.float32)
        assert (dispatcher.gemm(a, b) == a @ b).all()
    print("loaded", dispatcher.libraries[0].path, flush=True)
