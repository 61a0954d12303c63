"""``toolchain``: toolchain and header trees as files of tests."""

from __future__ import annotations

from pants.engine.target import COMMON_TARGET_FIELDS, Dependencies, MultipleSourcesField, StringSequenceField, Target
from pants.util.strutil import help_text


class ToolchainTreesField(StringSequenceField):
    alias = "trees"
    required = True
    help = 'Trees by the names that compile plans use, e.g. `["zig", "clang"]`.'


class ToolchainBackendsField(StringSequenceField):
    alias = "backends"
    help = "Our own headers and sources too: those that all backends share, and those of these backends."


class ToolchainFilesField(MultipleSourcesField):
    """Hidden and always empty: the hook by which trees become files of tests."""

    alias = "_toolchain_sources"
    uses_source_roots = False
    expected_num_files = 0
    help = "Not to be set."


class ToolchainTarget(Target):
    alias = "toolchain"
    core_fields = (
        *COMMON_TARGET_FIELDS,
        Dependencies,
        ToolchainTreesField,
        ToolchainBackendsField,
        ToolchainFilesField,
    )
    help = help_text(
        """
        Toolchain and header trees as files, for tests that run compile plans themselves: `<name>/<tree>/…` beside the
        BUILD file, and `<name>/trees.json`, which maps tree names to folders relative to the working directory.
        """
    )
