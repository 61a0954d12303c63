"""``kernel_library``: one library of kernels for each architecture."""

from __future__ import annotations

from kernelwright.pants.compat import LibraryOutputPathField
from kernelwright.pants.targets.proposing import ProposingTarget
from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Dependencies,
    MultipleSourcesField,
    StringField,
    StringSequenceField,
)
from pants.util.strutil import help_text


class LibraryKernelsField(Dependencies):
    help = "Kernels, such as `gemm_kernel`, and `kernel_set` targets. The result is a library for each architecture."


class LibraryNameField(StringField):
    alias = "library_name"
    help = "The file is called `lib<library_name>.so`. Default: the target's name."


class LibraryArchsField(StringSequenceField):
    alias = "archs"
    help = "Keep only the kernels of these architectures. Default: all."


class LibraryModelsField(StringSequenceField):
    alias = "models"
    help = help_text(
        """
        Models that `kernelwright tile-engine train` wrote, as paths relative to the BUILD file. The library for a
        model's architecture contains it, and dispatchers use it without being asked; the others leave it out.
        """
    )


class LibraryResourceField(MultipleSourcesField):
    """Hidden and always empty: the hook by which a library becomes a resource of Python targets."""

    alias = "_library_sources"
    uses_source_roots = True
    expected_num_files = 0
    help = "Not to be set."


class KernelLibraryTarget(ProposingTarget):
    alias = "kernel_library"
    core_fields = (
        *COMMON_TARGET_FIELDS,
        LibraryKernelsField,
        LibraryNameField,
        LibraryArchsField,
        LibraryModelsField,
        LibraryResourceField,
        LibraryOutputPathField,
    )
    help = help_text(
        """
        A library of kernels for each architecture, with its manifest: `<name>/<arch>/lib<name>.so` and
        `<name>/<arch>/manifest.json`.

        Python targets may depend on it as on a resource, and find it with
        `importlib.resources.files("<package>") / "<name>" / "<arch>"`.
        """
    )
