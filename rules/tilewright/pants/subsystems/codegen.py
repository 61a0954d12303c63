"""Where the code generator comes from and how it runs."""

from __future__ import annotations

from pants.option.option_types import StrListOption, StrOption
from pants.option.subsystem import Subsystem


class CodegenSubsystem(Subsystem):
    options_scope = "tilewright-codegen"
    help = "The code generator: validates, names and renders kernels and plans their compilation, in a sandbox."

    resolve = StrOption(default="codegen", help="The resolve with the generator's packages.")
    interpreter_constraints = StrListOption(default=["CPython>=3.11,<3.15"], help="Which Pythons may run it.")
    source_roots = StrListOption(
        default=["arch", "codegen"], advanced=True, help="Source roots of the generator in this workspace."
    )
