"""Learned models as parts of a kernel library, whose table names them: dispatchers use them by default."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.backends.base import Backend
from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import Model, read_model
from kernelwright.codegen.planning.native import HEADERS_TREE
from kernelwright.codegen.violations import SpecError


@dataclass(frozen=True)
class NamedModel:
    """A model, named after its file without suffix."""

    name: str
    model: Model

    @property
    def described(self) -> dict[str, Any]:
        """The manifest's entry; ``sha256`` is the digest of the model's content, which its file states."""
        made = self.model
        return {"name": self.name, "op": made.op, "dtypes": list(made.dtypes), "arch": made.arch, "sha256": made.digest}


def read_models(paths: Sequence[str]) -> tuple[NamedModel, ...]:
    """Read models from files. SpecError for one that cannot be compiled (see ``read_model``), or a name used twice."""
    models = tuple(NamedModel(PurePosixPath(path).stem, read_model(path)) for path in paths)
    names = [one.name for one in models]
    for name in names:
        if names.count(name) > 1:
            raise SpecError(f"two models are called {name!r}; give their files different names")
    return models


def models_of(arch: Arch, models: Sequence[NamedModel]) -> tuple[NamedModel, ...]:
    """Return the models for an architecture; libraries for others leave them out."""
    return tuple(one for one in models if one.model.arch == arch.name)


def model_actions(
    library: str, models: Sequence[NamedModel], backend: Backend
) -> tuple[tuple[RenderedFile, ...], tuple[Action, ...]]:
    """The C sources of the models of ``library``, a path without ``.so``, and the actions that compile them."""
    files, actions = [], []
    for one in models:
        source = RenderedFile(f"{library}_model_{one.name}.c", emit(one.model, one.name, part_of_library=True))
        built = source.path.removesuffix(".c") + ".o"
        command = backend.host.compile_c(source.path, built, trees=(HEADERS_TREE,))
        actions.append(command.action(f"compile {built}", f"Compile model {one.name}", [source.path], [built]))
        files.append(source)
    return tuple(files), tuple(actions)
