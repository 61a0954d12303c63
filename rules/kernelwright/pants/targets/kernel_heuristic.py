"""``kernel_heuristic``: a trained selection model, compiled."""

from __future__ import annotations

from kernelwright.pants.targets.proposing import ProposingTarget
from pants.engine.target import COMMON_TARGET_FIELDS, Dependencies, SingleSourceField, StringField


class HeuristicModelField(SingleSourceField):
    alias = "model"
    required = True
    expected_file_extensions = (".json",)
    help = "A model that `kernelwright tile-engine train` wrote. A truncated, altered or outdated one is refused."


class HeuristicOutputField(StringField):
    alias = "output"
    required = True
    help = 'The path of the library as a resource, relative to the workspace, e.g. `"src/pkg/libpick.so"`.'


class KernelHeuristicTarget(ProposingTarget):
    alias = "kernel_heuristic"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, HeuristicModelField, HeuristicOutputField)
    help = "A learned selector, compiled to a shared library for `kernelwright.dispatch.Heuristic`."
