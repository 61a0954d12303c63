"""Targets: a kernel, a set of kernels, a library of kernels, wheels, and the native dispatcher."""

from __future__ import annotations

from typing import Any, Mapping, Optional, Type

from pants.core.goals.package import OutputPathField
from pants.engine.addresses import Address
from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Dependencies,
    DictStringToStringField,
    Field,
    IntField,
    InvalidFieldException,
    InvalidFieldTypeException,
    MultipleSourcesField,
    OptionalSingleSourceField,
    SequenceField,
    SingleSourceField,
    SpecialCasedDependencies,
    StringField,
    StringSequenceField,
    Tags,
    Target,
    TargetGenerator,
    TriBoolField,
    ValidNumbers,
)
from pants.util.frozendict import FrozenDict
from pants.util.strutil import help_text


class KernelArchField(StringField):
    alias = "arch"
    required = True
    help = help_text(
        """
        The architecture that the kernel is built for, e.g. `"gfx942"`, `"sm_90a"` or `"x86_64_v4"`. Use
        `parametrize("gfx942", "gfx950")` for several.
        """
    )


class _ExtentField(SequenceField[int]):
    expected_element_type = int
    expected_type_description = "three integers: the extents along M, N and K"


class DTypeField(StringField):
    alias = "dtype"
    help = "Element type of A and B: fp32, fp16, bf16, fp8, bf8 or int8."


class DTypeAField(StringField):
    alias = "dtype_a"
    help = "Element type of A, where it is not that of B."


class DTypeBField(StringField):
    alias = "dtype_b"
    help = "Element type of B, where it is not that of A."


class DTypeCField(StringField):
    alias = "dtype_c"
    help = "Element type of C. Left out, it follows from `dtype`: fp16 for fp8 and bf8, int32 for int8, else the same."


class DTypeAccField(StringField):
    alias = "dtype_acc"
    help = "Type of the accumulators. Left out: int32 for int8, else fp32."


class LayoutField(StringField):
    alias = "layout"
    help = "Row- or column-major of A, B and C: rcr, rrr, crr or ccr."


class TileField(_ExtentField):
    alias = "tile"
    help = "What one workgroup computes, e.g. `[128, 128, 32]` (the cache block on CPU)."


class WaveField(_ExtentField):
    alias = "wave"
    help = "Waves of a workgroup along M, N and K, e.g. `[2, 2, 1]`."


class WarpTileField(_ExtentField):
    alias = "warp_tile"
    help = "One matrix instruction, e.g. `[32, 32, 16]` (the register block on CPU)."


class ClusterField(_ExtentField):
    alias = "cluster"
    help = "Workgroups of a cluster along M, N and K (NVIDIA), e.g. `[2, 1, 1]`."


class PipelineField(StringField):
    alias = "pipeline"
    help = "How operands travel from memory to the matrix units, e.g. compv3, mem, tma or packed."


class EpilogueField(StringField):
    alias = "epilogue"
    help = "How accumulators reach memory: cshuffle, default or tma."


class SchedulerField(StringField):
    alias = "scheduler"
    help = "intrawave, interwave or default on AMD; cooperative or pingpong on NVIDIA; default on CPU."


class PadField(SequenceField[bool]):
    alias = "pad"
    expected_element_type = bool
    expected_type_description = "three booleans: padding of M, N and K"
    help = "Whether extents that are no multiple of the tile are handled, e.g. `[True, True, False]`."


class PersistentField(TriBoolField):
    alias = "persistent"
    help = "Whether workgroups stay and loop over tiles."


class PreshuffleField(TriBoolField):
    alias = "preshuffle"
    help = "Whether B is given in the order in which the matrix instructions read it."


class WaveGroupsField(IntField):
    alias = "num_wave_groups"
    valid_numbers = ValidNumbers.positive_only
    help = "Groups of waves that split the work of a tile."


class OccupancyField(IntField):
    alias = "k_block_per_cu"
    valid_numbers = ValidNumbers.positive_only
    help = "Workgroups that shall fit on a compute unit at once."


class SplitKField(TriBoolField):
    alias = "split_k"
    help = "Whether the kernel can share K among workgroups (AMD); it then also serves alpha and beta."


class StreamKField(StringField):
    alias = "stream_k"
    help = "Whether workgroups share the K steps of all tiles evenly, and how parts are added: none, linear or tree."


class DTensorsField(IntField):
    alias = "num_d"
    help = "D tensors that the epilogue combines with the result: 0 to 4."


class DOpField(StringField):
    alias = "d_op"
    help = "How D tensors are combined with the result: add or multiply."


class ActivationField(StringField):
    alias = "activation"
    help = "The epilogue's last step: none, relu, gelu, fast_gelu, silu, sigmoid or tanh."


class BatchedField(TriBoolField):
    alias = "batched"
    help = "Whether the kernel serves several products of one shape."


class GroupedField(TriBoolField):
    alias = "grouped"
    help = "Whether the kernel serves products of different shapes."


class LimitsField(Field):
    """Bounds on what the compiled kernel may use; no part of what it is."""

    alias = "limits"
    value: Optional[FrozenDict[str, int]]
    default = None
    help = help_text(
        """
        What the compiled kernel may use, e.g. `{"max_vgpr_spills": 0, "min_occupancy": 25}`. A kernel beyond a limit
        fails its build, with the numbers. docs/resources.md lists the limits.
        """
    )

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> Optional[FrozenDict[str, int]]:
        value = super().compute_value(raw_value, address)
        if value is None:
            return None
        if not isinstance(value, Mapping) or not all(
            isinstance(name, str) and type(bound) is int for name, bound in value.items()
        ):
            raise InvalidFieldTypeException(
                address, cls.alias, raw_value, expected_type='a dictionary such as {"max_vgpr_spills": 0}'
            )
        return FrozenDict(value)


EXTENT_FIELDS = (TileField, WaveField, WarpTileField, ClusterField)
SCALAR_SPEC_FIELDS = (
    *(DTypeField, DTypeAField, DTypeBField, DTypeCField, DTypeAccField, LayoutField),
    *(PipelineField, EpilogueField, SchedulerField, PersistentField, PreshuffleField),
    *(WaveGroupsField, OccupancyField, SplitKField, StreamKField),
    *(DTensorsField, DOpField, ActivationField, BatchedField, GroupedField),
)
SPEC_FIELDS = (*SCALAR_SPEC_FIELDS, *EXTENT_FIELDS, PadField)


class GemmKernelTarget(Target):
    alias = "gemm_kernel"
    core_fields = (*COMMON_TARGET_FIELDS, KernelArchField, *SPEC_FIELDS, LimitsField)
    help = "One GEMM kernel. Fields left out get the default of the architecture; illegal combinations are refused."


class NoDependencies(tuple):  # type: ignore[type-arg]
    """The dependencies of every kernel of a set, which are none; equal if they come from equal expansions."""

    expansion: str

    def __new__(cls, expansion: str) -> NoDependencies:
        self = super().__new__(cls)
        self.expansion = expansion
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoDependencies) and self.expansion == other.expansion

    def __ne__(self, other: object) -> bool:  # tuple has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash(self.expansion)


class WholeKernel(str):
    """A kernel's identity that carries its canonical JSON: what lists fields, such as `peek`, prints the identity.

    ``siblings`` is the same for all kernels of its set.
    """

    canonical: str
    siblings: NoDependencies

    def __new__(cls, identity: str, canonical: str, siblings: NoDependencies) -> WholeKernel:
        self = super().__new__(cls, identity)
        self.canonical = canonical
        self.siblings = siblings
        return self

    def __eq__(self, other: object) -> bool:
        # Another generator may spell the same kernel in another way.
        return (
            isinstance(other, WholeKernel)
            and super().__eq__(other)
            and (self.canonical, self.siblings) == (other.canonical, other.siblings)
        )

    def __ne__(self, other: object) -> bool:  # str has one of its own
        return not self == other

    __hash__ = str.__hash__


class ExpandedKernelField(Field):
    """The whole kernel; set by generation, never written by hand."""

    alias = "_kernel"
    value: WholeKernel
    required = True
    help = "Identity of the kernel."

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> WholeKernel:
        value = super().compute_value(raw_value, address)
        if not isinstance(value, WholeKernel):
            raise InvalidFieldException(
                f"{address}: generated_kernel cannot be written in a BUILD file; write a gemm_kernel or a kernel_set"
            )
        return value


class GeneratedDependenciesField(Dependencies):
    """Equal for all kernels of a set.

    Pants resolves the dependencies of each target anew in every run, four nodes of its graph for each. Equal fields are
    one question: it is answered once for a set, by whichever kernel comes first, not ten thousand times. The
    expansion is part of the question, so that this kernel is still there whenever the question comes again.
    """

    value: NoDependencies
    required = True

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> NoDependencies:
        if not isinstance(raw_value, NoDependencies):
            raise InvalidFieldException(f"{address}: kernels of a set depend on nothing")
        return raw_value

    # Asked once for each kernel in each run: kernels of one expansion share the value.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeneratedDependenciesField) and (
            self.value is other.value or self.value.expansion == other.value.expansion
        )

    def __hash__(self) -> int:
        return hash(self.value.expansion)


class GeneratedKernelTarget(Target):
    alias = "generated_kernel"
    core_fields = (Tags, ExpandedKernelField)  # whatever `peek` shows, it shows thousands of times
    help = "One kernel of a `kernel_set`."

    def get(self, field: Type[Field], *, default_raw_value: Optional[Any] = None) -> Any:  # type: ignore[misc]
        """As for every target, but that what it depends on is one question for all kernels of its set."""
        if field is Dependencies:
            return GeneratedDependenciesField(self[ExpandedKernelField].value.siblings, self.address)
        return super().get(field, default_raw_value=default_raw_value)


class KernelArchsField(StringSequenceField):
    alias = "archs"
    required = True
    help = 'The architectures that the set is expanded for, e.g. `["gfx942", "sm_90a"]`.'


class RuleSetField(StringField):
    alias = "set"
    help = "A set by name: `essential`, `default`, or a preselected one such as `fp16_rcr_compute`."


class KernelConfigField(OptionalSingleSourceField):
    alias = "config"
    expected_file_extensions = (".json",)
    help = "A JSON file with value lists and min/max/step/exclude ranges of fields, expanded to all legal combinations."


class KernelFilterField(StringField):
    alias = "filter"
    help = "Keeps the kernels for which the expression holds, e.g. `c.tile_n >= 128 and c.pipeline == 'compv4'`."


class KernelSetTarget(TargetGenerator):
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
        LimitsField,
    )
    help = "Many kernels: a rule set or a config, times architectures. Generates one target for each."


class LibraryKernelsField(Dependencies):
    help = "The kernels: `gemm_kernel` and `kernel_set` targets. One library per architecture comes out."


class LibraryNameField(StringField):
    alias = "library_name"
    help = "The file becomes `lib<library_name>.so`. Left out: the target's name."


class LibraryArchsField(StringSequenceField):
    alias = "archs"
    help = "Keep only the kernels of these architectures. Left out: all."


class LibraryResourceField(MultipleSourcesField):
    """Hidden and always empty: the hook by which a library becomes a resource of Python targets."""

    alias = "_library_sources"
    uses_source_roots = True
    expected_num_files = 0
    help = "Not to be set."


class KernelLibraryTarget(Target):
    alias = "kernel_library"
    core_fields = (
        *COMMON_TARGET_FIELDS,
        LibraryKernelsField,
        LibraryNameField,
        LibraryArchsField,
        LibraryResourceField,
        OutputPathField,
    )
    help = help_text(
        """
        A library of kernels for each architecture, with its manifest: `<name>/<arch>/lib<name>.so` and
        `<name>/<arch>/manifest.json`.

        Python targets may depend on it as on a resource, and find it with
        `importlib.resources.files("<package>") / "<name>" / "<arch>"`.
        """
    )


class WheelProjectField(SingleSourceField):
    alias = "project"
    required = True
    expected_file_extensions = (".toml",)
    help = "A TOML file with a `[project]` table: name, version, requirements, scripts, as in a pyproject.toml."


class WheelLicensesField(StringSequenceField):
    alias = "licenses"
    default = ("LICENSE",)
    help = "Files of the workspace whose texts go into the wheel as licences, as paths or globs."


class WheelPathsField(DictStringToStringField):
    alias = "paths"
    help = "Folders of the workspace and where their files stand in the wheel. Elsewhere source roots are stripped."


class PythonWheelTarget(Target):
    alias = "python_wheel"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, WheelProjectField, WheelLicensesField, WheelPathsField)
    help = help_text(
        """
        A wheel of the Python sources, resources, files and libraries that it depends on, directly or not, with a
        provenance statement. Its platform is the oldest on which every library in it loads.
        """
    )


class KernelWheelsPackageField(StringField):
    alias = "package"
    required = True
    help = 'The package below which the libraries stand, e.g. `"acme_kernels.gemm"`; one wheel adds `.gfx942` to it.'


class KernelWheelsTarget(Target):
    alias = "kernel_wheels"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, WheelProjectField, WheelLicensesField, KernelWheelsPackageField)
    help = help_text(
        """
        One wheel for each architecture of a `kernel_library`, called `<project>-<arch>`, with the licence texts of the
        headers whose code is compiled into it.
        """
    )


class PinnedWheelField(StringField):
    alias = "wheel"
    required = True
    help = "The `python_wheel` to pin."


class PinnedRequirementsField(MultipleSourcesField):
    alias = "requirements"
    required = True
    expected_file_extensions = (".txt",)
    help = "Hash-pinned requirements files."


class WheelPinsTarget(Target):
    alias = "wheel_pins"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, PinnedWheelField, PinnedRequirementsField)
    help = help_text(
        """
        Copies of hash-pinned requirements files, `<name>/<file>`, that name a wheel of this workspace by its digest
        as well.
        """
    )


class NativeSourcesField(MultipleSourcesField):
    required = True
    expected_file_extensions = (".c", ".cpp")
    help = "C99 and C++17 sources. They may include the project's own headers (`kernelwright/…`)."


class NativeOutputField(StringField):
    alias = "output"
    required = True
    help = 'Where the library stands as a resource, as a path of the workspace, e.g. `"src/pkg/libfoo.so"`.'


class NativeLinkField(StringSequenceField):
    alias = "link"
    default = ()
    help = 'Libraries of the C runtime to link, e.g. `["dl", "pthread"]`.'


class NativeLibraryTarget(Target):
    alias = "native_library"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, NativeSourcesField, NativeOutputField, NativeLinkField)
    help = "A shared library built by the host toolchain; Python targets depend on it as on a resource."


class ToolchainTreesField(StringSequenceField):
    alias = "trees"
    required = True
    help = 'Trees by the names that compile plans use, e.g. `["zig", "abi"]`.'


class ToolchainFilesField(MultipleSourcesField):
    """Hidden and always empty: the hook by which trees become files of tests."""

    alias = "_toolchain_sources"
    uses_source_roots = False
    expected_num_files = 0
    help = "Not to be set."


class ToolchainTarget(Target):
    alias = "toolchain"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, ToolchainTreesField, ToolchainFilesField)
    help = help_text(
        """
        Toolchain and header trees as files, for tests that run compile plans themselves: `<name>/<tree>/…` beside the
        BUILD file, and `<name>/trees.json`, which maps tree names to folders relative to the working directory.
        """
    )


class OnDemandArgumentField(StringField):
    alias = "argument"
    required = True
    help = 'The argument, or the value of an option, e.g. `"sim:gfx942"` for `--device sim:gfx942`.'


class OnDemandNeedsField(SpecialCasedDependencies):
    alias = "needs"
    required = True
    help = "The dependencies that a run with that argument has."


class OnDemandTarget(Target):
    alias = "on_demand"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, OnDemandArgumentField, OnDemandNeedsField)
    help = help_text(
        """
        What a program needs only when it is run with a certain argument: `./pants run <program> -- <argument>`.

        Whoever depends on it depends on `needs` in such a run, and on nothing otherwise: other runs, tests and packages
        do not build it.
        """
    )
