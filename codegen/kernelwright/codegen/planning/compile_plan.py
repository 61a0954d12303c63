"""The compile plan of a library: the actions of every kernel, the table of descriptors, and the link."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from kernelwright.arch import Arch
from kernelwright.codegen.actions import CompilePlan, KernelActions, LinkGroup, RenderedFile
from kernelwright.codegen.backends.base import Backend
from kernelwright.codegen.formulas.devices import times_of
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.planning.groups import groups_of
from kernelwright.codegen.planning.models import NamedModel, model_actions, models_of
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.templates import read_template, render_template
from kernelwright.codegen.violations import SpecError
from kernelwright.files.arch_files import KINDS


def kernel_actions(kernel: Kernel, arch: Arch, backend: Backend) -> KernelActions:
    """Return the rendered files of a kernel, header first, and the actions that turn them into objects."""
    header, *others = render_kernel(kernel, arch, backend.name)
    made = backend.kernel_actions(kernel, arch, header.path)
    first, *rest = made.actions  # the compile; the others take almost no time
    actions = (replace(first, seconds=operation(kernel.spec.op).seconds(kernel, arch)), *rest)
    return KernelActions((header, *made.files, *others), actions, made.objects, made.report, made.counts)


MAX_NAME = 100
"""The most characters of a library's name."""


def compile_plan(
    name: str, arch: Arch, kernels: Sequence[Kernel], backend: Backend, models: Sequence[NamedModel] = ()
) -> CompilePlan:
    """Return everything that turns kernels of one architecture and ``models`` into ``<arch>/lib<name>.so``.

    The result depends on the set of kernels alone, not on their order. Raises SpecError for a name that is not a C
    identifier, an empty list, a kernel of another architecture or the same kernel twice.
    """
    ordered = _checked(name, arch, kernels)
    plans = tuple(kernel_actions(kernel, arch, backend) for kernel in ordered)
    own = models_of(arch, models)
    table = RenderedFile(f"{arch.name}/{name}_table.c", render_table(name, arch, ordered, [one.name for one in own]))
    library = f"{arch.name}/lib{name}.so"
    groups = []
    for first, end in groups_of(ordered):
        output = f"{arch.name}/{name}_group_{ordered[first].identity[:16]}.o"
        members = tuple(kernel.name for kernel in ordered[first:end])
        groups.append(LinkGroup(backend.group_action(_objects(plans[first:end]), output), members))
    objects = [group.action.outputs[0] for group in groups] or _objects(plans)
    operations = sorted({kernel.spec.op for kernel in ordered})
    sources, compiles = model_actions(library.removesuffix(".so"), own, backend)
    objects += [output for action in compiles for output in action.outputs]
    actions = backend.library_actions(arch, table.path, objects, library, operations)
    return CompilePlan((table, *sources), (*compiles, *actions), library, plans, tuple(groups))


def _objects(plans: Sequence[KernelActions]) -> list[str]:
    return [path for plan in plans for path in plan.objects]


def render_table(name: str, arch: Arch, kernels: Sequence[Kernel], models: Sequence[str] = ()) -> str:
    """Return the C file with the library's table and its one exported symbol."""
    variables = {
        "name": name,
        "arch": arch,
        "backend": f"KW_BACKEND_{KINDS[arch.backend].upper()}",
        "kernels": kernels,
        "models": models,
        "times": times_of(arch),
        "flops": [(f"KW_{dtype.upper()}", flops) for dtype, flops in sorted(arch.flops_per_clock_per_cu.items())],
    }
    template = read_template("kernelwright.codegen.planning", "templates/library.c.jinja")
    return render_template(template, variables)


def _checked(name: str, arch: Arch, kernels: Sequence[Kernel]) -> list[Kernel]:
    if len(name) > MAX_NAME:
        raise SpecError(f"library name {name[:40]!r}… has {len(name)} characters; allowed: at most {MAX_NAME}")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise SpecError(f"library name {name!r} must be letters, digits and underscores, and start with no digit")
    if not kernels:
        raise SpecError(f"library {name!r} for {arch.name} has no kernels")
    ordered = sorted(kernels, key=lambda kernel: kernel.name)
    for kernel in ordered:
        if kernel.arch != arch.name:
            raise SpecError(f"library {name!r} is for {arch.name}, but {kernel.name} is for {kernel.arch}")
    for first, second in itertools.pairwise(ordered):
        if first.identity == second.identity:
            raise SpecError(f"library {name!r} for {arch.name} lists {first.name} twice")
    return ordered
