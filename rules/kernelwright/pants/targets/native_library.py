"""``native_library``: a shared library of plain C and C++."""

from __future__ import annotations

from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Dependencies,
    MultipleSourcesField,
    StringField,
    StringSequenceField,
    Target,
)


class NativeSourcesField(MultipleSourcesField):
    required = True
    expected_file_extensions = (".c", ".cpp")
    help = "C99 and C++17 sources. They may include the project's own headers (`kernelwright/…`)."


class NativeOutputField(StringField):
    alias = "output"
    required = True
    help = 'The path of the library as a resource, relative to the workspace, e.g. `"src/pkg/libfoo.so"`.'


class NativeCopiesField(StringSequenceField):
    alias = "copies"
    default = ()
    help = "Other names that the library gets in the same folder, for programs that look for them."


class NativeLinkField(StringSequenceField):
    alias = "link"
    default = ()
    help = 'Libraries of the C runtime to link, e.g. `["dl", "pthread"]`.'


class NativeLibraryTarget(Target):
    alias = "native_library"
    core_fields = (
        *COMMON_TARGET_FIELDS,
        Dependencies,
        NativeSourcesField,
        NativeOutputField,
        NativeCopiesField,
        NativeLinkField,
    )
    help = "A shared library built by the host toolchain; Python targets depend on it as on a resource."
