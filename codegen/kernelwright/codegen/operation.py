"""The interface of an operation: everything that the rest of the generator asks of it."""

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
    """Kernels in a fixed order, and how many combinations each rule refused (a combination may break several)."""

    kernels: tuple[Kernel, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Expectation:
    """What the compiler's report on a kernel must show; a report that shows less fails the build.

    The report describes ``device_kernels`` device functions, excluding those whose symbols contain one of ``helpers``,
    which run besides them. With ``matrix_instructions`` (vector multiply-adds on CPUs) there must be at least one of
    these.
    """

    device_kernels: int = 1
    matrix_instructions: bool = False
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True)
class BackendPart:
    """What an operation adds to a backend.

    ``templates`` are the templates of the files that each kernel is compiled from, by suffix (``.hpp`` is the header
    that instantiates the kernel). ``trees`` are header trees (see :mod:`kernelwright.codegen.trees`) that its compiles
    see besides the backend's own; descriptors and launchers also see ``launcher_trees``. ``sources`` are the launcher
    sources that a library with such kernels contains: paths in their trees, by names unique in a library. ``joins``
    says that kernels compiled together and cut apart are the same to the byte as those compiled singly, which
    ``tests/gemm/batches`` checks. ``compile_mb`` is the memory of the largest compile of one with the backend's default
    toolchain, rounded up; None leaves it to the toolchain, which knows GEMM. ``takes_stock_headers`` says which kernels
    would change with the rewritten headers (:mod:`kernelwright.codegen.lean`): those are compiled with the original
    headers. ``tests/gemm/lean`` finds them.
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
    """A field of partial specs and BUILD targets that stands for several of the spec; its type is that of ``field``."""

    field: str
    help: str


CONTAINED_SETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "essential": ("essential",),
        "coverage": ("coverage", "essential"),
        "release": ("release", "coverage", "essential"),
    }
)
"""Sets with written kernels → the lists of kernels that each contains in full, its own first."""


class KernelSets(Protocol):
    """The kernel sets of an operation, by its own names: everywhere else a set is ``<operation>:<name>``.

    Derived classes inherit the defaults given here.
    """

    def names(self) -> tuple[str, ...]:
        """Return every name."""

    @property
    def spellings(self) -> Mapping[str, str]:
        """Further names of sets that users may write without the operation, such as those of another project."""
        return {}

    @property
    def examples(self) -> tuple[str, ...]:
        """Small sets that together have typical values of every field; the search for a legal kernel uses them."""
        return self.names()[:1]

    @property
    def help(self) -> str:
        """How names are formed, for messages: names written per architecture, and the grammar of the others."""
        return ", ".join(self.names())

    def holding(self, values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """Sets that together hold every kernel of the operation's tables whose attributes have one of the values."""
        return self.names()

    def archs(self, name: str) -> tuple[str, ...]:
        """The shipped architectures that a set has kernels for, sorted. SpecError, with the reasons, if none has."""

    def expand(self, name: str, arch: Arch) -> Expansion:
        """Return the kernels of a set, each legal on ``arch``. SpecError, with the reasons, if there are none."""

    def missing_kernels(self, name: str, arch: Arch) -> tuple[str, ...]:
        """A sentence for each kernel of a set that is missing from another set that promises to contain the first."""
        return ()


@dataclass(frozen=True)
class GeneratorOption:
    """An option of ``kernelwright generate <operation>`` that takes several of ``choices``."""

    name: str
    choices: tuple[str, ...]
    metavar: str
    help: str


class KernelGenerator(Protocol):
    """Kernels requested as users of the CK Tile dispatcher request them: by options, a set or a configuration."""

    @property
    def options(self) -> tuple[GeneratorOption, ...]:
        """The operation's own options."""

    def expansions(
        self, wanted: Mapping[str, Sequence[str]], preselected: str | None, config: object, arch: Arch
    ) -> Iterable[Expansion]:
        """Return the parts that options (values by name), a set or a configuration (data) describe; none is empty.

        SpecError for values that contradict each other or the set, and for a part without kernels.
        """


@dataclass(frozen=True)
class Candidate:
    """One way in which a kernel serves a problem, with its best choice.

    :ivar microseconds: predicted time of its launch.
    :ivar further: the problems of the plan's other stages, which other kernels serve.
    """

    microseconds: float
    further: tuple[Any, ...] = ()


class TimeModel(Protocol):
    """Predicts times of kernels that need not be built. Problems are what ``read`` returns; they are hashable."""

    @property
    def recorded(self) -> tuple[str, ...]:
        """The names of its problems in traces."""

    def read(self, raw: Mapping[str, Any], recorded: str) -> Any:
        """Make a problem from its JSON fields. SpecError for unknown fields and values of the wrong kind."""

    def measured(self, row: Mapping[str, str]) -> Any:
        """Return the problem of a row of the tile engine's table; None for a row of another operation.

        KeyError or ValueError for a row without a column, or with a wrong value.
        """

    def key(self, problem: Any) -> Hashable:
        """Return a key that is equal for problems that one measurement stands for."""

    def candidate_sets(self, problem: Any) -> tuple[str, ...]:
        """Return the sets of the operation that could serve a problem."""

    def fitted(self, kernel: Kernel, problem: Any) -> Spec | None:
        """The spec of a candidate with the epilogue that the problem needs; None if even that could not serve it.

        The result need not be legal.
        """

    def candidates(self, kernel: Kernel, problem: Any, arch: Arch) -> Sequence[Candidate]:
        """Return each way in which a kernel serves a problem, or a stage of one; none if it does not."""


class Operation(Protocol):
    """One operation: its spec, and everything that the stages of a build ask about its specs and kernels.

    Methods that take a spec or kernel are only given those of this operation.
    """

    @property
    def name(self) -> str:
        """The value of ``op`` in its specs."""

    @property
    def spec_type(self) -> type[Spec]:
        """The model of its specs. Every field has a description, which is the help of the BUILD field."""

    @property
    def shorthands(self) -> Mapping[str, Shorthand]:
        """The shorthands by name."""

    @property
    def sets(self) -> KernelSets:
        """Its kernel sets."""

    @property
    def generator(self) -> KernelGenerator | None:
        """The generator behind ``kernelwright generate``, if it has one."""

    @property
    def time_model(self) -> TimeModel | None:
        """The model that predicts times of its kernels, if it has one."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The keys of :meth:`view`."""

    def check_arch(self, arch: Arch) -> None:
        """Read the operation's section of an architecture; ArchError if it is malformed."""

    def complete(self, raw: Mapping[str, Any], arch: Arch) -> Mapping[str, Any]:
        """Return all fields of the spec that ``raw`` stands for; SpecError for unknown keys and values."""

    def name_of(self, spec: Any) -> str:
        """Return a file name of at most 240 characters from [a-z A-Z 0-9 _], different for different specs."""

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that it has specs and rules for."""

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """Return the rules that make a spec illegal: those that hold everywhere, then those of a backend."""

    def expand(self, config: Mapping[str, Any], arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
        """Yield every combination of a configuration, with the violations that refuse it; SpecError if malformed."""

    def view(self, spec: Any) -> Mapping[str, Any]:
        """Return what filters see of a spec: text, numbers and booleans by attribute."""

    def variant(self, spec: Any) -> str:
        """One word for the variant of a kernel, as listings show it; "" if the operation has one kind of kernel."""

    def features(self, spec: Any, arch: Arch) -> tuple[str, ...]:
        """Return the features that a device needs beyond the architecture, sorted."""

    def context(self, kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        """Return the variables of the templates: C++ symbols. KeyError for a spec that the rules refuse."""

    def on_backend(self, backend: str) -> BackendPart:
        """Templates, header trees and launcher sources. SpecError if the operation has no kernels for the backend."""

    def seconds(self, kernel: Kernel, arch: Arch) -> float:
        """Return the estimated processor seconds of the compile; measurements of earlier builds take precedence."""

    def expects(self, kernel: Kernel, arch: Arch) -> Expectation:
        """Return what the compiler's report on the kernel must show."""


def operation(name: object) -> Operation:
    """Return the operation called ``name``; SpecError with the known names and the closest match if there is none."""
    return cast(Operation, lookup(name))
