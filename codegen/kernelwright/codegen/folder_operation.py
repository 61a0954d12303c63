"""An operation that is a folder of modules, as :class:`kernelwright.codegen.operation.Operation` describes one."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel, Spec, flat_names, flat_values
from kernelwright.codegen.operation import BackendPart, Expectation, KernelGenerator, KernelSets, Shorthand, TimeModel
from kernelwright.codegen.selecting.expand import expand_fields
from kernelwright.codegen.templates import read_template
from kernelwright.codegen.violations import Rule, SpecError, Violation

Templates = Mapping[str, Mapping[str, str]]
"""Paths of templates in an operation's folder, by backend and suffix."""

Expanded = Iterator[tuple[Kernel, tuple[Violation, ...]]]


@dataclass(eq=False)
class FolderOperation:
    """An operation whose functions stand for the protocol's methods of the same names. ``package`` is the folder; it
    has

    * ``constraints/common.py`` and ``constraints/<backend>.py`` with ``RULES``,
    * for each backend of ``templates`` a module with ``context(kernel, arch)``, ``TREES`` and ``SOURCES``.

    ``title`` is the operation's name in sentences. Fields with a default may be left out: ``section`` reads the
    operation's section of an architecture, ``complete`` adds fields that a user may leave out, ``expand`` reads
    configurations (by default their sections have the fields of the spec). Filters see every field of a spec
    (``tile.m`` as ``tile_m``), the shorthands, the properties of specs that ``properties`` names, and ``variant`` if
    specs have such a property. :class:`BackendPart` explains ``joins`` (for CK Tile's kernels), ``compile_mb`` (by
    backend) and ``takes_stock_headers``, a function that a backend's module may have.
    """

    name: str
    title: str
    package: str
    spec_type: type[Spec]
    templates: Templates
    sets: KernelSets
    name_of: Callable[[Any], str]
    section: Callable[[Arch], object] = lambda arch: None
    complete: Callable[[Mapping[str, Any], Arch], Mapping[str, Any]] = lambda raw, arch: raw
    expand: Callable[[Mapping[str, Any], Arch], Expanded] = expand_fields
    features: Callable[[Any, Arch], tuple[str, ...]] = lambda spec, arch: ()
    seconds: Callable[[Kernel, Arch], float] = lambda kernel, arch: 1.0
    expects: Callable[[Kernel, Arch], Expectation] = lambda kernel, arch: Expectation()
    shorthands: Mapping[str, Shorthand] = field(default_factory=dict)
    properties: tuple[str, ...] = ()
    generator: KernelGenerator | None = None
    time_model: TimeModel | None = None
    joins: bool = False
    compile_mb: Mapping[str, int] = field(default_factory=dict)

    @functools.cached_property
    def attributes(self) -> tuple[str, ...]:
        """The keys of :meth:`view`."""
        return (*flat_names(self.spec_type), *self.shorthands, *self._properties)

    @functools.cached_property
    def _properties(self) -> tuple[str, ...]:
        return (*self.properties, "variant") if hasattr(self.spec_type, "variant") else self.properties

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that have templates."""
        return tuple(self.templates)

    def check_arch(self, arch: Arch) -> None:
        """Read the operation's section; ArchError if it is malformed."""
        self.section(arch)

    def rules(self, backend: str) -> tuple[Rule, ...]:
        """The rules that hold for every kernel of the operation, then those of a backend."""
        self._check(backend)
        return _rules(self.package, backend)

    def view(self, spec: Any) -> dict[str, Any]:
        """Return what filters see of a spec."""
        fields = flat_values(spec)
        shorthands = {name: fields[short.field] for name, short in self.shorthands.items()}
        return {**fields, **shorthands, **{name: getattr(spec, name) for name in self._properties}}

    def variant(self, spec: Any) -> str:
        """Return the variant that the spec itself states, "" if it has none."""
        return str(getattr(spec, "variant", ""))

    def context(self, kernel: Kernel, arch: Arch, backend: str) -> Mapping[str, object]:
        """Return the C++ symbols for the templates of a backend."""
        self._check(backend)
        return cast("Mapping[str, object]", _module(self.package, backend).context(kernel, arch))

    def on_backend(self, backend: str) -> BackendPart:
        """Templates and launcher sources."""
        self._check(backend)
        return _on_backend(self, backend)

    def _check(self, backend: str) -> None:
        if backend not in self.templates:
            allowed = ", ".join(self.templates)
            raise SpecError(f"no {self.title} kernel is for the backend {backend!r}; allowed: {allowed}")


def _module(package: str, name: str) -> Any:
    return importlib.import_module(f"{package}.{name}")


@functools.cache
def _on_backend(operation: FolderOperation, backend: str) -> BackendPart:
    package, module = operation.package, _module(operation.package, backend)
    templates = {suffix: read_template(package, path) for suffix, path in operation.templates[backend].items()}
    joins = operation.joins and backend == "ck_tile"
    memory = operation.compile_mb.get(backend)
    part = BackendPart(templates, module.TREES, (operation.name,), module.SOURCES, joins, memory)
    stock = getattr(module, "takes_stock_headers", part.takes_stock_headers)
    return replace(part, takes_stock_headers=stock)


@functools.cache
def _rules(package: str, backend: str) -> tuple[Rule, ...]:
    common, own = (_module(package, f"constraints.{name}") for name in ("common", backend))
    return (*common.RULES, *own.RULES)
