"""What variants require on every backend, and how a backend reports those that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import is_set
from kernelwright.codegen.operations.gemm.spec import Activation, DOp, GemmSpec
from kernelwright.codegen.violations import Violation

FIELDS = ("stream_k", "num_d", "activation", "batched", "grouped")
"""Fields of a spec that a backend may refuse as a whole, see :func:`refused`."""


def check_variants(spec: GemmSpec, arch: Arch) -> Iterator[Violation]:
    """Some variants exclude each other, or would be a second name for the same kernel."""
    any_epilogue = spec.activation is Activation.ANY
    if any_epilogue and spec.num_d:
        why = "a kernel of any epilogue takes as many D tensors as the problem has"
        yield Violation("gemm.variants", "num_d", str(spec.num_d), why, "0", "0")
    if spec.d_op is not DOp.ADD and spec.num_d == 0:
        why = "without D tensors there is nothing to combine"
        yield Violation("gemm.variants", "d_op", spec.d_op, why, DOp.ADD, DOp.ADD)
    if spec.split_k and is_set(spec, "stream_k"):
        why = "stream-K shares K among workgroups already"
        yield Violation("gemm.variants", "split_k", "True", why, "False", "False")
    if spec.grouped:
        for field in ("batched", "split_k", "stream_k", "num_d", "activation"):
            if is_set(spec, field):
                default = str(GemmSpec.model_fields[field].default)
                why = "the products of a grouped GEMM are plain: no D tensors, activation, batches or slices"
                yield Violation("gemm.variants", field, str(getattr(spec, field)), why, default, default)


def refused(rule: str, spec: GemmSpec, reasons: Mapping[str, str]) -> Iterator[Violation]:
    """Yield a violation of ``rule`` for each field of ``reasons`` that ``spec`` sets, with that reason."""
    for field, reason in reasons.items():
        if is_set(spec, field):
            default = str(GemmSpec.model_fields[field].default)
            yield Violation(rule, field, str(getattr(spec, field)), reason, default, default)
