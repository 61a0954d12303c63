"""What the plugin adds to Pants."""

from __future__ import annotations

from typing import Iterable, Type

from pants.engine.target import Target

from tilewright.pants import target_generation
from tilewright.pants import target_types as targets
from tilewright.pants.goals import package_library
from tilewright.pants.util_rules import actions, codegen, kernels, library, toolchains, trees


def target_types() -> Iterable[Type[Target]]:
    return [
        targets.GemmKernelTarget,
        targets.KernelSetTarget,
        targets.GeneratedKernelTarget,
        targets.KernelLibraryTarget,
        targets.NativeDispatcherTarget,
    ]


def rules() -> Iterable[object]:
    return [
        *actions.rules(),
        *codegen.rules(),
        *kernels.rules(),
        *library.rules(),
        *package_library.rules(),
        *target_generation.rules(),
        *toolchains.rules(),
        *trees.rules(),
    ]
