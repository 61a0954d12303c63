"""What the plugin adds to Pants."""

from __future__ import annotations

from typing import Iterable, Type

from kernelwright.pants import damaged_store, performance
from kernelwright.pants.engine import exit_codes, progress
from kernelwright.pants.goals import (
    bench,
    bench_engine,
    check_library,
    check_set,
    package_library,
    package_site,
    package_wheel,
)
from kernelwright.pants.goals import kernels as kernels_goal
from kernelwright.pants.targets import on_demand
from kernelwright.pants.targets.kernel_heuristic import KernelHeuristicTarget
from kernelwright.pants.targets.kernel_library import KernelLibraryTarget
from kernelwright.pants.targets.kernel_set import GeneratedKernelTarget, KernelSetTarget
from kernelwright.pants.targets.native_library import NativeLibraryTarget
from kernelwright.pants.targets.operation_kernels import kernel_targets
from kernelwright.pants.targets.static_site import StaticSiteTarget
from kernelwright.pants.targets.toolchain import ToolchainTarget
from kernelwright.pants.targets.wheel_pins import WheelPinsTarget
from kernelwright.pants.targets.wheels import KernelWheelsTarget, PythonWheelTarget
from kernelwright.pants.util_rules import (
    actions,
    codegen,
    compile_commands,
    kernels,
    library,
    native,
    pins,
    resource_report,
    target_generation,
    toolchain_files,
    toolchains,
    trees,
    wheel,
    wheel_pins,
)
from pants.engine.target import Target


def target_types() -> Iterable[Type[Target]]:
    return [
        *kernel_targets(),
        KernelSetTarget,
        GeneratedKernelTarget,
        KernelLibraryTarget,
        KernelHeuristicTarget,
        KernelWheelsTarget,
        NativeLibraryTarget,
        PythonWheelTarget,
        StaticSiteTarget,
        ToolchainTarget,
        WheelPinsTarget,
        on_demand.OnDemandTarget,
    ]


def rules() -> Iterable[object]:
    damaged_store.advise()
    exit_codes.install()
    return [
        *actions.rules(),
        *bench.rules(),
        *bench_engine.rules(),
        *check_library.rules(),
        *check_set.rules(),
        *codegen.rules(),
        *compile_commands.rules(),
        *kernels.rules(),
        *kernels_goal.rules(),
        *library.rules(),
        *native.rules(),
        *on_demand.rules(),
        *package_library.rules(),
        *package_site.rules(),
        *package_wheel.rules(),
        *performance.rules(),
        *pins.rules(),
        *progress.rules(),
        *resource_report.rules(),
        *target_generation.rules(),
        *toolchain_files.rules(),
        *toolchains.rules(),
        *trees.rules(),
        *wheel.rules(),
        *wheel_pins.rules(),
    ]
