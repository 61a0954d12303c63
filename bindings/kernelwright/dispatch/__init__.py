"""Load kernel libraries and launch the best kernel for each problem.

NumPy is the only requirement; no GPU is touched before the first launch.
"""

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.core.arena import trim
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import (
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
    TraceError,
)
from kernelwright.dispatch.core.explanation import Estimate, Explanation, RankedKernel, RankedValue, StageExplanation
from kernelwright.dispatch.core.kernel import Candidate, KernelEntry, Selection, Stage
from kernelwright.dispatch.core.plan import BoundPlan, OperationPlan
from kernelwright.dispatch.dispatcher import Dispatcher
from kernelwright.dispatch.loading.heuristic import Heuristic
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.loading.manifest import Manifest
from kernelwright.dispatch.operations.attention import AppendPlan, AppendProblem, AttentionPlan, AttentionProblem
from kernelwright.dispatch.operations.convolution import ConvPlan, ConvProblem
from kernelwright.dispatch.operations.gemm import GemmProblem, GroupedGemmProblem, GroupedPlan, Plan
from kernelwright.dispatch.operations.gemm.operand import Operand, ShuffledB, operand
from kernelwright.dispatch.recording.recorder import Recording, record
from kernelwright.dispatch.recording.trace import merge_traces
from kernelwright.dispatch.threads import Threads, threads_in_use, use_threads

__all__ = [
    "AbiMismatchError",
    "AppendPlan",
    "AppendProblem",
    "ArchMismatchError",
    "ArrayError",
    "AttentionPlan",
    "AttentionProblem",
    "BoundPlan",
    "Candidate",
    "ConvPlan",
    "ConvProblem",
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
    "Heuristic",
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
    "OperationPlan",
    "Plan",
    "ProblemError",
    "RankedKernel",
    "RankedValue",
    "Recording",
    "Selection",
    "SelectionError",
    "ShuffledB",
    "Stage",
    "StageExplanation",
    "Threads",
    "TraceError",
    "dtypes",
    "merge_traces",
    "operand",
    "record",
    "threads_in_use",
    "trim",
    "use_threads",
]
