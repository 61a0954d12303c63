"""Libraries for architectures that kernelwright does not have: found, planned for, and executed by the simulator."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest

from kernelwright.dispatch import Device, DeviceNameError, Dispatcher, GemmProblem, KernelLibrary
from kernelwright.simulator.run.device import last_report

LIBRARIES = files("own_archs") / "gemm"


@pytest.mark.parametrize(("name", "arch", "waves"), [("hip:0", "my_rdna", 4), ("cuda:0", "my_hopper", 1)])
def test_problems_are_planned_without_the_device(name: str, arch: str, waves: int) -> None:
    device = Device(name, arch=arch)
    library = KernelLibrary.load_for(device, LIBRARIES)
    assert library.arch == arch and library.manifest.device.startswith("a made-up GPU")
    dispatcher = Dispatcher([library], device=device)
    for m, n, k in ((16, 2048, 512), (200, 96, 64)):
        plan = dispatcher.plan(GemmProblem(m, n, k, dtype="fp16"))
        assert plan.kernel.arch == arch and plan.kernel.name in {one.name for one in library.kernels}
        wave = plan.kernel.spec["wave"]
        assert wave["m"] * wave["n"] * wave["k"] == waves


def test_the_simulator_executes_kernels_of_the_made_up_gpu() -> None:
    dispatcher = Dispatcher([KernelLibrary.load_for("sim:my_rdna", LIBRARIES)], device="sim:my_rdna")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((40, 48), (34, 48)))
    product = dispatcher.gemm(a, b.T)
    assert np.array_equal(product.astype(np.float64), a.astype(np.float64) @ b.T.astype(np.float64))
    report = last_report()
    assert report is not None and report.arch == "my_rdna" and report.counts["matrix"] > 0


def test_an_unknown_name_lists_the_own_ones() -> None:
    with pytest.raises(DeviceNameError, match=r"simulated architectures: gfx90a, .*, gfx1201, my_rdna"):
        Device("sim:my_rdna4")
