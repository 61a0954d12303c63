"""``kernel_set``: many kernels from a rule set or a configuration, and the kernels that it generates."""

from __future__ import annotations

from typing import Any, Optional

from kernelwright.pants.compat import dependencies
from kernelwright.pants.performance import WholeKernel
from kernelwright.pants.targets.kernel import LimitsField
from kernelwright.pants.targets.proposing import ProposingTarget
from pants.engine.addresses import Address
from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Field,
    FloatField,
    IntField,
    InvalidFieldException,
    OptionalSingleSourceField,
    StringField,
    StringSequenceField,
    Tags,
    TargetGenerator,
)


class ExpandedKernelField(Field):
    """The complete kernel; set by generation, never written by hand."""

    alias = "_kernel"
    value: WholeKernel
    required = True
    help = "Identity of the kernel."

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> WholeKernel:
        value = super().compute_value(raw_value, address)
        if not isinstance(value, WholeKernel):
            raise InvalidFieldException(
                f"{address}: generated_kernel is not for BUILD files; write a kernel, e.g. gemm_kernel, or a kernel_set"
            )
        return value


class GeneratedKernelTarget(dependencies.SharingTarget):
    alias = "generated_kernel"
    core_fields = (Tags, ExpandedKernelField)  # `peek` prints each of them thousands of times
    help = "One kernel of a `kernel_set`."

    @property
    def expansion(self) -> Optional[str]:
        """An identifier shared by all kernels of the set, in a tuned process."""
        return self[ExpandedKernelField].value.expansion


class KernelArchsField(StringSequenceField):
    alias = "archs"
    required = True
    help = 'The architectures that the set is expanded for, e.g. `["gfx942", "sm_90a"]`.'


class RuleSetField(StringField):
    alias = "set"
    help = (
        "A set by the names of its operation and its own: `gemm:essential`, `convolution:default`. A name that one"
        " operation alone has may stand without it, such as the preselected set `fp16_rcr_compute`."
    )


class KernelConfigField(OptionalSingleSourceField):
    alias = "config"
    expected_file_extensions = (".json",)
    help = "A JSON file with value lists and min/max/step/exclude ranges of fields, expanded to all legal combinations."


class KernelFilterField(StringField):
    alias = "filter"
    help = "Keeps the kernels for which the expression holds, e.g. `c.tile_n >= 128 and c.pipeline == 'compv4'`."


class KernelProblemsField(OptionalSingleSourceField):
    alias = "problems"
    expected_file_extensions = (".json",)
    help = (
        "A trace of recorded problems, as `kernelwright.dispatch.record` writes it: the set holds the kernels that"
        " serve them with the least time in all. The fields `set` or `config` then name the candidates; by default"
        " these are all preselected kernels of the problems' types."
    )


class KernelSweepField(OptionalSingleSourceField):
    alias = "sweep"
    expected_file_extensions = (".csv",)
    help = "A table of `kernelwright tile-engine bench`, whose times count instead of predicted ones; with `problems`."


class BudgetKernelsField(IntField):
    alias = "budget_kernels"
    help = "The set holds at most so many kernels for each architecture; with `problems`."


class BudgetSecondsField(FloatField):
    alias = "budget_seconds"
    help = "The kernels of an architecture take at most so many processor seconds to compile; with `problems`."


class KernelSetTarget(ProposingTarget, TargetGenerator):
    alias = "kernel_set"
    generated_target_cls = GeneratedKernelTarget
    copied_fields = (Tags,)
    moved_fields = ()
    core_fields = (
        *COMMON_TARGET_FIELDS,
        KernelArchsField,
        RuleSetField,
        KernelConfigField,
        KernelFilterField,
        KernelProblemsField,
        KernelSweepField,
        BudgetKernelsField,
        BudgetSecondsField,
        LimitsField,
    )
    help = (
        "Many kernels: a rule set, a configuration, or what recorded problems need, for each architecture. Generates"
        " one target for each kernel."
    )
