"""The scalar registers in which a wave of gfx90a with scratch starts."""

from __future__ import annotations

from types import SimpleNamespace

from kernelwright.simulator.code.descriptor import Allocation, KernelDescriptor
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.machine.scratch import BUFFER
from kernelwright.simulator.machine.words import POISON
from kernelwright.simulator.run.start import ARGUMENT_ADDRESS, Start
from kernelwright.simulator.testing.instructions import make_wave


def test_scratch_of_gfx90a() -> None:
    """As LLVM's kernels for gfx90a expect it: buffer, arguments, flat scratch, workgroup, offset of the wave."""
    user = {"private_segment_buffer": 0, "kernarg_segment_ptr": 4, "flat_scratch_init": 6}
    kernel = KernelDescriptor(
        name="k",
        entry=0,
        lds_bytes=0,
        scratch_bytes=64,
        kernarg_bytes=8,
        user_sgprs=user,
        user_sgpr_count=8,
        preload=(0, 0),
        workgroup_ids=(True, False, True),
        workgroup_info=False,
        private_segment=True,
        workitem_ids=1,
        mode=0xF0,
        registers=Allocation(8, 0, 16, 8, 8),
        dynamic_stack=False,
    )
    wave = make_wave("gfx90a")
    wave.s[:] = [POISON] * 128
    start = Start(SimpleNamespace(target=TARGETS["gfx90a"]), kernel, (64, 1, 1), bytes(8), 0)  # type: ignore[arg-type]
    start._set_scalars(wave, (5, 6, 7))
    assert tuple(wave.s[:4]) == BUFFER
    assert wave.read_scalar64(4) == ARGUMENT_ADDRESS
    assert wave.s[6:12] == [0, 0, 5, 7, 0, POISON]
