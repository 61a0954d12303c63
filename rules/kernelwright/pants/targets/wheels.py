"""``python_wheel`` and ``kernel_wheels``: wheels of Python code and of kernel libraries."""

from __future__ import annotations

from kernelwright.pants.targets.proposing import ProposingTarget
from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Dependencies,
    DictStringToStringField,
    SingleSourceField,
    StringField,
    StringSequenceField,
    Target,
)
from pants.util.strutil import help_text


class WheelProjectField(SingleSourceField):
    alias = "project"
    required = True
    expected_file_extensions = (".toml",)
    help = "A TOML file with a `[project]` table: name, version, requirements, scripts, as in a pyproject.toml."


class WheelLicensesField(StringSequenceField):
    alias = "licenses"
    default = ("LICENSE",)
    help = "Licence files of the workspace that go into the wheel, as paths or globs."


class WheelPathsField(DictStringToStringField):
    alias = "paths"
    help = "Maps folders of the workspace to folders of the wheel. The source roots of all other files are stripped."


class PythonWheelTarget(Target):
    alias = "python_wheel"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, WheelProjectField, WheelLicensesField, WheelPathsField)
    help = help_text(
        """
        A wheel of the Python sources, resources, files and libraries that it depends on, directly or not, with a
        provenance statement. Its platform tag names the oldest platform on which every library in it loads.
        """
    )


class KernelWheelsPackageField(StringField):
    alias = "package"
    required = True
    help = 'The package that contains the libraries, e.g. `"acme_kernels.gemm"`; one wheel adds `.gfx942` to it.'


class KernelWheelsTarget(ProposingTarget):
    alias = "kernel_wheels"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, WheelProjectField, WheelLicensesField, KernelWheelsPackageField)
    help = help_text(
        """
        One wheel for each architecture of a `kernel_library`, called `<project>-<arch>`, with the licence texts of the
        headers whose code is compiled into it.
        """
    )
