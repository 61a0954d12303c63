"""Where the code generator, its headers and its pins come from, and how it runs."""

from __future__ import annotations

from pants.option.option_types import StrListOption, StrOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class CodegenSubsystem(Subsystem):
    options_scope = "kernelwright-codegen"
    help = softwrap(
        """
        The code generator, which validates, names and renders kernels and plans their compilation, in a sandbox. By
        default it is the `kernelwright` wheel that was built together with this plugin, pinned by its digest.
        """
    )

    interpreter_constraints = StrListOption(default=["CPython>=3.11,<3.15"], help="Python versions that may run it.")
    source_roots = StrListOption(
        default=[], advanced=True, help="Source roots of a generator in this workspace, instead of the wheel."
    )
    resolve = StrOption(
        default=None, advanced=True, help="The resolve with the packages that a generator in this workspace needs."
    )
    arch_path = StrListOption(
        default=[],
        help=softwrap(
            """
            Folders of this workspace with architecture files, `<arch>.json`, to know beside the shipped ones. See
            docs/adding_an_arch.md.
            """
        ),
    )
    include = StrOption(
        default=None,
        advanced=True,
        help="The folder of C and C++ headers in this workspace, `launchers` beside it, instead of the wheel's.",
    )
    pins = StrOption(
        default=None,
        advanced=True,
        help="The folder of hash-pinned requirements of toolchains in this workspace, instead of the plugin's.",
    )
