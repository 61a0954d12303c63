"""Whether a GEMM kernel can be expected to serve a problem: the rules of its backend, on its C ABI traits."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import record_of
from kernelwright.codegen.dtypes import MatrixOrder
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.operations.gemm import cpu, cutlass
from kernelwright.codegen.operations.gemm.rules import checks, cuda, hip_sizes
from kernelwright.codegen.operations.gemm.rules.structs import Problem, Traits
from kernelwright.codegen.operations.gemm.spec import MAX_D_TENSORS, GemmSpec, Pipeline
from kernelwright.problems.gemm.problem import GemmProblem

MAX_SPLIT_K = {"cpu": cpu.MAX_SPLIT_K, "cutlass": cutlass.MAX_SPLIT_K, "ck_tile": hip_sizes.MAX_SPLIT_K}
"""The most slices that split-K kernels of each backend serve."""
_ORDERS = {"r": MatrixOrder.ROW_MAJOR, "c": MatrixOrder.COL_MAJOR}
_VECTOR_BYTES = 16  # vectors of AMD kernels


def traits_of(spec: GemmSpec, problem: GemmProblem, backend: str) -> Traits:
    """Return the traits in a kernel's descriptor. A shuffled B is assumed to be shuffled for this kernel."""
    a, b, c = (_ORDERS[letter] for letter in spec.layout)
    any_epilogue = spec.activation is Activation.ANY
    return Traits(
        spec.dtype_a, spec.dtype_b, spec.dtype_c, spec.dtype_acc, a, b, c,
        max_split_k=MAX_SPLIT_K[backend] if spec.split_k else 1, num_d=MAX_D_TENSORS if any_epilogue else spec.num_d,
        d_op=spec.d_op, activation=spec.activation, batched=spec.batched,
        b_format=(problem.b_format or 1) if spec.preshuffle else 0,
    )  # fmt: skip


@functools.lru_cache(maxsize=1 << 10)
def problem_of(problem: GemmProblem) -> Problem:
    """The problem as kernels see it, with one slice of K where the dispatcher chooses."""
    return record_of(Problem, problem.in_c() | {"split_k": max(1, problem.split_k)})


def refusal(spec: GemmSpec, problem: GemmProblem, arch: Arch) -> Refusal:
    """Return why the kernel does not serve the problem.

    For AMD kernels, whose vectors and pipelines only their code objects know, this requires more than the kernels do:
    whole vectors along rows, whole tiles where they do not pad.
    """
    if spec.grouped:
        return "this kernel serves grouped gemm"
    t, p = traits_of(spec, problem, arch.backend), problem_of(problem)
    if arch.backend == "cutlass":
        return cuda.check_copied(t, p) if spec.pipeline is Pipeline.CP_ASYNC else cuda.check(t, p)
    return checks.traits_match(t, p) or (_on_amd(spec, problem) if arch.backend == "ck_tile" else None)


def _on_amd(spec: GemmSpec, problem: GemmProblem) -> Refusal:
    extents = ((problem.m, spec.tile.m), (problem.n, spec.tile.n), (problem.k, spec.tile.k))
    pads = (spec.pad.m, spec.pad.n, spec.pad.k)
    whole = all(padded or extent % tile == 0 for (extent, tile), padded in zip(extents, pads, strict=True))
    if whole and all(length % _VECTOR_BYTES == 0 for length in problem.rows):
        return None
    return "extents are no whole tiles or rows no whole vectors"
