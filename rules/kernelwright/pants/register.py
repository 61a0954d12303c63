"""What the plugin adds to Pants."""

from __future__ import annotations

from typing import Iterable, Type

from kernelwright.pants import daemon, damaged_store, on_demand, target_generation
from kernelwright.pants import target_types as targets
from kernelwright.pants.goals import check_library, package_library, package_wheel
from kernelwright.pants.goals import kernels as kernels_goal
from kernelwright.pants.util_rules import (
    actions,
    codegen,
    compile_commands,
    kernels,
    library,
    native,
    pins,
    report,
    toolchain_files,
    toolchains,
    trees,
    wheel,
    wheel_pins,
)
from pants.engine.target import Target


def target_types() -> Iterable[Type[Target]]:
    return [
        targets.GemmKernelTarget,
        targets.KernelSetTarget,
        targets.GeneratedKernelTarget,
        targets.KernelLibraryTarget,
        targets.KernelWheelsTarget,
        targets.NativeLibraryTarget,
        targets.PythonWheelTarget,
        targets.ToolchainTarget,
        targets.WheelPinsTarget,
        targets.OnDemandTarget,
    ]


def rules() -> Iterable[object]:
    daemon.tune()
    damaged_store.advise()
    return [
        *actions.rules(),
        *check_library.rules(),
        *codegen.rules(),
        *compile_commands.rules(),
        *native.rules(),
        *kernels.rules(),
        *kernels_goal.rules(),
        *library.rules(),
        *on_demand.rules(),
        *package_library.rules(),
        *package_wheel.rules(),
        *pins.rules(),
        *report.rules(),
        *target_generation.rules(),
        *toolchain_files.rules(),
        *toolchains.rules(),
        *trees.rules(),
        *wheel.rules(),
        *wheel_pins.rules(),
    ]
