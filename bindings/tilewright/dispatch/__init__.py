"""Load kernel libraries and run the best kernel for each problem. NumPy is the only requirement; no GPU is touched
before the first launch."""

from tilewright.dispatch.arrays import Operand, ShuffledB, operand
from tilewright.dispatch.device import Device
from tilewright.dispatch.dispatcher import Dispatcher
from tilewright.dispatch.errors import (
    AbiMismatchError,
    ArchMismatchError,
    ArrayError,
    DeviceError,
    DeviceNameError,
    DigestMismatchError,
    LaunchError,
    LibraryLoadError,
    LibraryNotFoundError,
    ManifestError,
    NativeLibraryError,
    NoKernelError,
    ProblemError,
    SelectionError,
    TilewrightError,
)
from tilewright.dispatch.explanation import Estimate, Explanation, RankedKernel
from tilewright.dispatch.grouped import GroupedGemmProblem, GroupedPlan
from tilewright.dispatch.library import KernelLibrary
from tilewright.dispatch.manifest import KernelEntry, Manifest
from tilewright.dispatch.plan import BoundPlan, Plan, Selection
from tilewright.dispatch.problem import GemmProblem

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
    "TilewrightError",
    "operand",
]
