"""The toolchain for each kind of device: an explicit choice, never a silent fallback."""

from __future__ import annotations

from pants.option.option_types import StrOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class HostToolchainSubsystem(Subsystem):
    options_scope = "kernelwright-host"
    help = "The compiler of CPU kernels and of the host side of every library."

    toolchain = StrOption(
        default="zig",
        help=softwrap(
            """
            `zig`: clang 22 from the pinned ziglang wheel, the same bytes on every machine. `system`: the compiler at
            `path`, whose digest and version are part of every cache key.
            """
        ),
    )
    path = StrOption(default=None, help='Absolute path of the C++ compiler for `toolchain = "system"`.')


class HipToolchainSubsystem(Subsystem):
    options_scope = "kernelwright-hip"
    help = "The compiler of AMD kernels."

    toolchain = StrOption(
        default="wheel",
        help=(
            "`wheel`: clang 22 from pinned wheels, no ROCm needed. `stock`: the same with CK Tile's headers as they "
            "are, which compile at twice the cost. `rocm`: the ROCm installation at `path`."
        ),
    )
    path = StrOption(default=None, help='Root of the ROCm installation for `toolchain = "rocm"`, e.g. /opt/rocm.')


class CudaToolchainSubsystem(Subsystem):
    options_scope = "kernelwright-cuda"
    help = "The compiler of NVIDIA kernels."

    toolchain = StrOption(
        default="clang",
        help=softwrap(
            """
            `clang`: clang 22 and ptxas from pinned wheels. `stock`: the same with CUTLASS's headers as they are.
            `nvcc`: nvcc of the pinned wheel with the g++ at `host_compiler`. `system-nvcc`: the nvcc at `path`.
            """
        ),
    )
    path = StrOption(default=None, help='Absolute path of nvcc for `toolchain = "system-nvcc"`.')
    host_compiler = StrOption(default=None, help='Absolute path of the host compiler, a g++, for `toolchain = "nvcc"`.')
