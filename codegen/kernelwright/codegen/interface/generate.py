"""Output of ``kernelwright generate``: kernels that an operation's options describe, their headers and a list."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import KernelGenerator, operation
from kernelwright.codegen.planning.compile_plan import kernel_actions
from kernelwright.codegen.planning.describe import kernel_json
from kernelwright.codegen.planning.render import header_path
from kernelwright.codegen.selecting.selection import Selection, find_arch, limited

REGISTRY = "registry.json"


@dataclass(frozen=True)
class Wanted:
    """The options of ``kernelwright generate <operation>``: the operation's own, and those that all operations share.

    ``options`` has every option of the operation, empty where it was not given. At most one of the last two is given.
    """

    options: Mapping[str, Sequence[str]]
    targets: tuple[str, ...]
    preselected: str | None = None
    config: str | None = None


def wanted_kernels(generator: KernelGenerator, wanted: Wanted, known: Mapping[str, Arch]) -> list[Selection]:
    """Return the kernels of each target, sorted by name; each combination of the options has at least one.

    Raises SpecError or a subclass for an unknown set or variant, a file that cannot be read, options that contradict
    the set or the file, and a combination without kernels, with the reasons.
    """
    config = None if wanted.config is None else read_json(wanted.config)
    limits = [config["limits"]] if isinstance(config, Mapping) and "limits" in config else []
    selections = []
    archs = {arch.name: arch for arch in (find_arch(name, known) for name in wanted.targets)}
    for _, arch in sorted(archs.items()):
        kernels: dict[str, Kernel] = {}
        dropped: dict[str, int] = {}
        for part in generator.expansions(wanted.options, wanted.preselected, config, arch):
            kernels.update((kernel.identity, kernel) for kernel in part.kernels)
            for rule, count in part.dropped.items():
                dropped[rule] = dropped.get(rule, 0) + count
        ordered = sorted(kernels.values(), key=lambda kernel: kernel.name)
        selections.append(limited(Selection(arch, tuple(ordered), dict(sorted(dropped.items()))), limits))
    return selections


def generated_files(selections: Sequence[Selection], backends: Mapping[str, Any]) -> dict[str, str]:
    """Text by path: headers and sources of all kernels, ``<arch>/<name>.hpp``, and their list, ``registry.json``.

    ``backends`` maps the selections' architectures to their backends. The registry is ``{"schema_version": 1,
    "kernels": [{arch, name, identity, features, spec, variant, header}, …]}``.
    """
    files: dict[str, str] = {}
    listed = []
    for item in selections:
        for kernel in item.kernels:
            made = kernel_actions(kernel, item.arch, backends[item.arch.name])
            files.update((file.path, file.text) for file in made.files)
            fields = {"variant": operation(kernel.spec.op).variant(kernel.spec), "header": header_path(kernel)}
            listed.append({**kernel_json(kernel, item.arch, item.limits), **fields})
    files[REGISTRY] = json.dumps({"schema_version": 1, "kernels": listed}, indent=1) + "\n"
    return files
