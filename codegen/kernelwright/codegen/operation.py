"""What an operation is to the rest of the generator: everything that only the operation knows."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, cast

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.codegen.registry import lookup, operation_names, register, unregister
from kernelwright.codegen.templates import Template
from kernelwright.codegen.violations import Rule, Violation

__all__ = [
    "BackendPart",
    "Candidate",
    "Expansion",
    "Expectation",
    "GeneratorOption",
    "KernelGenerator",
    "KernelSets",
    "Operation",
    "Shorthand",
    "TimeModel",
    "operation",
    "operation_names",
    "register",
    "unregister",
]


@dataclass(frozen=True)
class Expansion:
    """``kernels`` in a fixed order, and how many combinations each rule refused (a combination may break several)."""

    kernels: tuple[Kernel, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What the compiler's report on a kernel must show; a report that shows less is an error of the build.

    The report describes ``device_kernels`` device functions, besides those whose symbols contain one of ``helpers``,
    which run beside them and are left out. With ``matrix_instructions`` (vector multiply-adds on CPUs) there must be at
    least one of these.
    """

    device_kernels: int = 1
    matrix_instructions: bool = False
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackendPart:
    """What an operation adds to a backend.

    ``templates`` are those of the files that each kernel is compiled from, by suffix (``.hpp`` is the header that
    instantiates the kernel). ``trees`` are header trees (see :mod:`kernelwright.codegen.trees`) that its compiles see
    besides the backend's own; descriptors and launchers also see ``launcher_trees``. ``sources`` are the launcher
    sources that a library with such kernels contains: the path of each in its tree, by a name unique in a library.
    ``joins`` says that kernels compiled together and cut apart are the same to the byte as compiled singly, which
    ``tests/gemm/batches`` compares. ``compile_mb`` is the memory of the largest compile of one with the backend's
    default toolchain, rounded up; None leaves it to the toolchain, which knows GEMM. ``takes_stock_headers`` says which
    kernels the rewritten headers (:mod:`kernelwright.codegen.lean`) make other code of: those are compiled with the
    headers as they are. ``tests/gemm/lean`` finds them.
    """

    templates: Mapping[str, Template]
    trees: tuple[str, ...] = ()
    launcher_trees: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    joins: bool = False
    compile_mb: int | None = None
    takes_stock_headers: Callable[[Kernel, Arch], bool] = lambda kernel, arch: False


@dataclass(frozen=True)
class Shorthand:
    """A field of partial specs and BUILD targets that stands for several of the spec; it has the type of ``field``."""

    field: str
    help: str


CONTAINED_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "essential": ("essential",),
        "coverage": ("coverage", "essential"),
        "release": ("release", "coverage", "essential"),
    }
)
"""Sets whose kernels are written down → the lists of kernels that each has all of, its own first."""


class KernelSets(Protocol):
    """The sets of kernels of an operation, by names of its own: everywhere else a set is ``<operation>:<name>``.

    A class that derives from this one has the answers that are given here.
    """

    def names(self) -> tuple[str, ...]:
        """Every name."""

    @property
    def spellings(self) -> Mapping[str, str]:
        """Sets by further names that users may write without the operation, such as those of another project."""
        return {}

    @property
    def examples(self) -> tuple[str, ...]:
        """Small sets that together have typical values of every field: the search for a legal kernel takes them."""
        return self.names()[:1]

    @property
    def help(self) -> str:
        """How names are made, for messages: those written per architecture, and the grammar of the others."""
        return ", ".join(self.names())

    def holding(self, values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """Sets that together hold every kernel of the operation's tables whose attributes have one of the values."""
        return self.names()

    def archs(self, name: str) -> tuple[str, ...]:
        """The shipped architectures that a set has kernels for, sorted. SpecError, with the reasons, if none has."""

    def expand(self, name: str, arch: Arch) -> Expansion:
        """The kernels of a set, every one legal on ``arch``. SpecError, with the reasons, where there are none."""

    def missing_kernels(self, name: str, arch: Arch) -> tuple[str, ...]:
        """A sentence for each kernel of a set that is missing in another set, which promises to contain the first."""
        return ()


@dataclass(frozen=True)
class GeneratorOption:
    """An option of ``kernelwright generate <operation>`` that takes several of ``choices``."""

    name: str
    choices: tuple[str, ...]
    metavar: str
    help: str


class KernelGenerator(Protocol):
    """Kernels asked for as users of the CK Tile dispatcher ask: by options, a set or a configuration."""

    @property
    def options(self) -> tuple[GeneratorOption, ...]:
        """The operation's own options."""

    def expansions(
        self, wanted: Mapping[str, Sequence[str]], preselected: str | None, config: object, arch: Arch
    ) -> Iterable[Expansion]:
        """The parts that options (values by name), a set or a configuration (data) describe; none is empty.

        SpecError for values that contradict each other or the set, and for a part without kernels.
        """


@dataclass(frozen=True)
class Candidate:
    """How a kernel serves a problem, with the best choice of its own.

    :ivar microseconds: predicted time of its launch.
    :ivar further: the problems of the other stages of the plan, which kernels of their own serve.
    """

    microseconds: float
    further: tuple[Any, ...] = ()


class TimeModel(Protocol):
    """Predicts times of kernels that need not be built. Problems are what ``read`` returns; they are hashable."""

    @property
    def recorded(self) -> tuple[str, ...]:
        """What traces call its problems."""

    def read(self, raw: Mapping[str, Any], recorded: str) -> Any:
        """A problem of its JSON fields. SpecError for unknown fields and values of the wrong kind."""

    def measured(self, row: Mapping[str, str]) -> Any:
        """The problem of a row of the tile engine's table; None for a row of another operation.

        KeyError or ValueError for a row without a column, or with a wrong value.
        """

    def key(self, problem: Any) -> Hashable:
        """Equal for problems that one measurement stands for."""

    def candidate_sets(self, problem: Any) -> tuple[str, ...]:
        """The sets of the operation that could serve a problem."""

    def fitted(self, kernel: Kernel, problem: Any) -> Spec | None:
        """The spec of a candidate with what the problem asks of an epilogue; None where it could not serve so either.

        What is returned need not be legal.
        """

    def candidates(self, kernel: Kernel, problem: Any, arch: Arch) -> Sequence[Candidate]:
        """Each way in which a kernel serves a problem, or a stage of one; none if it does not."""


class Operation(Protocol):
    """One operation: its spec, and all that the stages of a build ask about specs and kernels of it.

    Methods that take a spec or kernel are only given those of this operation.
    """

    @property
    def name(self) -> str:
        """The value of ``op`` in its specs."""

    @property
    def spec_type(self) -> type[Spec]:
        """The model of its specs. Every field of it has a description, which is the help of the BUILD field."""

    @property
    def shorthands(self) -> Mapping[str, Shorthand]:
        """The shorthands by name."""

    @property
    def sets(self) -> KernelSets:
        """Its sets of kernels."""

    @property
    def generator(self) -> KernelGenerator | None:
        """What ``kernelwright generate`` offers for it, if anything."""

    @property
    def time_model(self) -> TimeModel | None:
        """What predicts times of its kernels, if anything does."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The keys of :meth:`view`."""

    def check_arch(self, arch: Arch) -> None:
        """Read the operation's section of an architecture; ArchError if it is malformed."""

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> Mapping[str, Any]:
        """All fields of the spec that ``raw`` stands for; SpecError for unknown keys and values."""

    def name_of(self, spec: Any) -> str:
        """A file name of at most 240 characters from [a-z A-Z 0-9 _], different for different specs."""

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that it has specs and rules for."""

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """What makes a spec illegal: rules that hold everywhere, then those of a backend."""

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        """Every combination of a configuration, with the violations that refuse it; SpecError if it is malformed."""

    def view(self, spec: Any) -> Mapping[str, Any]:
        """What filters see of a spec: text, numbers and booleans by attribute."""

    def variant(self, spec: Any) -> str:
        """One word for what a kernel serves, as listings show it; "" if the operation has one kind of kernel."""

    def features(self, spec: Any, arch: Arch) -> tuple[str, ...]:
        """What a device must have beyond the architecture, sorted."""

    def context(self, kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        """Variables of the templates: C++ symbols. KeyError for a spec that the rules refuse."""

    def on_backend(self, backend: str) -> BackendPart:
        """Templates, header trees and launcher sources. SpecError if no kernel of the operation is for the backend."""

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        """Estimated processor seconds of the compile; earlier builds' measurements come first."""

    def expects(self, kernel: Kernel, arch: Arch) -> Expectation:
        """What the compiler's report on the kernel must show."""


def operation(name: object) -> Operation:
    """The operation called ``name``; SpecError with the known names and the closest match otherwise."""
    return cast(Operation, lookup(name))
