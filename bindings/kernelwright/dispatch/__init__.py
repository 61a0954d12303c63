"""Load kernel libraries and run the best kernel for each problem. NumPy is the only requirement; no GPU is touched
before the first launch."""

from kernelwright.dispatch.arrays import Operand, ShuffledB, operand
from kernelwright.dispatch.device import Device
from kernelwright.dispatch.dispatcher import Dispatcher
from kernelwright.dispatch.errors import (
    AbiMismatchError,
    ArchMismatchError,
    ArrayError,
    DeviceError,
    DeviceNameError,
    DigestMismatchError,
    KernelwrightError,
    LaunchError,
    LibraryLoadError,
    LibraryNotFoundError,
    ManifestError,
    NativeLibraryError,
    NoKernelError,
    ProblemError,
    SelectionError,
)
from kernelwright.dispatch.explanation import Estimate, Explanation, RankedKernel
from kernelwright.dispatch.grouped import GroupedGemmProblem, GroupedPlan
from kernelwright.dispatch.library import KernelLibrary
from kernelwright.dispatch.manifest import KernelEntry, Manifest
from kernelwright.dispatch.plan import BoundPlan, Plan, Selection
from kernelwright.dispatch.problem import GemmProblem

__all__ = [
    "AbiMismatchError",
    "ArchMismatchError",
    "ArrayError",
    "BoundPlan",
    "Device",
    "DeviceError",
    "DeviceNameError",
    "DigestMismatchError",
    "Dispatcher",
    "Estimate",
    "Explanation",
    "GemmProblem",
    "GroupedGemmProblem",
    "GroupedPlan",
    "KernelEntry",
    "KernelLibrary",
    "KernelwrightError",
    "LaunchError",
    "LibraryLoadError",
    "LibraryNotFoundError",
    "Manifest",
    "ManifestError",
    "NativeLibraryError",
    "NoKernelError",
    "Operand",
    "Plan",
    "ProblemError",
    "RankedKernel",
    "Selection",
    "SelectionError",
    "ShuffledB",
    "operand",
]
