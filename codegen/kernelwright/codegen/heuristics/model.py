"""A trained model as data: JSON that says what it was trained on, with digests, and nothing that could run."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.inputs import Input, checked, read_json
from kernelwright.codegen.violations import SpecError

FORMAT, VERSION = "kernelwright.heuristic", 2
MAX_TREES, MAX_NODES = 10_000, 100_000
"""The most trees of a model and nodes of a tree: `tile-engine train` makes 300 trees of 30 nodes by default."""
_Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
_Whole = Annotated[int, Field(ge=-(2**31), lt=2**31)]
_Listed = Field(strict=False, max_length=MAX_NODES)


class _TreeContent(Input):
    feature: tuple[_Whole, ...] = _Listed
    threshold: tuple[float, ...] = _Listed
    left: tuple[_Whole, ...] = _Listed
    right: tuple[_Whole, ...] = _Listed
    leaf: tuple[float, ...] = _Listed


class _Content(Input):
    """A model's file. What reaches generated C is a known word, an identifier, a digest or a finite number."""

    format: Literal["kernelwright.heuristic"]
    version: Literal[2]
    op: str
    dtypes: tuple[Annotated[DType, Field(strict=False)], ...] = Field(strict=False, min_length=1, max_length=len(DType))
    arch: str = Field(pattern=r"^[a-z0-9_]+$", max_length=64)
    schema_digest: _Digest = Field(alias="schema")
    features: tuple[str, ...] = Field(strict=False)
    hull: dict[str, Annotated[tuple[float, float], Field(strict=False)]]
    kernel_hull: dict[str, Annotated[tuple[float, float], Field(strict=False)]] = Field(default_factory=dict)
    trees: tuple[_TreeContent, ...] = Field(strict=False, min_length=1, max_length=MAX_TREES)
    provenance: dict[str, Any]
    sha256: _Digest


@dataclass(frozen=True)
class Tree:
    """Node ``i`` goes to ``left[i]`` if ``feature[i] <= threshold[i]``, else to ``right[i]``; ``-1 - j`` is leaf ``j``.

    A tree without nodes has one leaf.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    leaf: tuple[float, ...]

    def value(self, row: Sequence[float]) -> float:
        """The leaf that the features lead to."""
        at = 0 if self.feature else -1
        while at >= 0:
            at = self.left[at] if row[self.feature[at]] <= self.threshold[at] else self.right[at]
        return self.leaf[-1 - at]


@dataclass(frozen=True)
class Model:
    """Predicts log(1 + TFLOP/s) of a kernel on a problem; where the schema has a prior, log(TFLOP/s).

    :ivar prior: the column of the schema's prior, which trees correct; -1 for none.
    :ivar dtypes: of A in the problems that it ranks: the type of its training data first, then types of the same size.
    :ivar hull: least and greatest value of each problem feature in its training data; ``kernel_hull`` those of kernel
        features.
    :ivar digest: sha256 of its content; also the identity of the compiled model.
    """

    op: str
    dtypes: tuple[str, ...]
    arch: str
    schema: str
    features: tuple[str, ...]
    hull: Mapping[str, tuple[float, float]]
    trees: tuple[Tree, ...]
    provenance: Mapping[str, Any]
    digest: str
    prior: int = -1
    kernel_hull: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def predict(self, row: Sequence[float]) -> float:
        """The sum of the prior and all trees' leaves, in the order in which compiled models add them."""
        total = 0.0 if self.prior < 0 else row[self.prior]
        for tree in self.trees:
            total += tree.value(row)
        return total

    def rate(self, predicted: float) -> float:
        """TFLOP/s that a prediction stands for."""
        return math.expm1(predicted) if self.prior < 0 else math.exp(predicted)

    def covers(self, row: Sequence[float]) -> bool:
        """Whether the problem is within the range of the training data."""
        at = {name: index for index, name in enumerate(self.features)}
        return all(low <= row[at[name]] <= high for name, (low, high) in self.hull.items())

    def knows(self, kernel_features: Mapping[str, float]) -> bool:
        """Whether kernels of the kind were among the training data; others come behind those that were."""
        return all(low <= kernel_features[name] <= high for name, (low, high) in self.kernel_hull.items())


def digest_of(content: Mapping[str, Any]) -> str:
    """sha256 of canonical JSON of everything but the digest itself."""
    rest = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def write_model(content: Mapping[str, Any], path: Path) -> None:
    """Write the model with its digest, a line for each tree."""
    whole = {**content, "format": FORMAT, "version": VERSION}
    whole["sha256"] = digest_of(whole)
    trees = ",\n  ".join(json.dumps(tree, separators=(",", ":")) for tree in whole.pop("trees"))
    head = json.dumps(whole, indent=1, sort_keys=True)[:-2]
    path.write_text(f'{head},\n "trees": [\n  {trees}\n ]\n}}\n', "utf-8")


def read_model(path: str | Path) -> Model:
    """The model of a file.

    SpecError with the reason for a file that is truncated, was altered, is of another version, or was trained on other
    features than those of this version, and for a value that is not of its closed type: whoever alters a file can
    write a digest that fits, so the digest finds damage and the types keep text out of the C source.
    """
    what = repr(str(path))
    raw = read_json(path)
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.get("version") != VERSION:
        raise SpecError(f"{what} is no model of format {FORMAT} {VERSION}; train one with `tile-engine train`")
    if digest_of(raw) != raw.get("sha256"):
        raise SpecError(f"{what} was altered: its content does not have the sha256 that it states")
    made = checked(_Content, raw, what)
    try:
        schema = schema_of(made.op)
    except SpecError as error:
        raise SpecError(f"{what} is wrong: {error}") from None
    if made.schema_digest != schema.digest or made.features != tuple(schema.features):
        raise SpecError(
            f"{what} was trained on other features ({made.schema_digest[:12]}) than those of {made.op} now "
            f"({schema.digest[:12]}); train it again"
        )
    if unknown := sorted(set(made.hull) - set(schema.problem_features)):
        raise SpecError(f"{what}: hull has {unknown[0]!r}; allowed: {', '.join(schema.problem_features)}")
    if unknown := sorted(set(made.kernel_hull) - set(schema.kernel_features)):
        allowed = ", ".join(schema.kernel_features) or "nothing"
        raise SpecError(f"{what}: kernel_hull has {unknown[0]!r}; allowed: {allowed}")
    trees = tuple(_tree(tree, len(made.features), what) for tree in made.trees)
    return Model(
        made.op, tuple(map(str, made.dtypes)), made.arch, made.schema_digest, made.features, made.hull, trees,
        made.provenance, made.sha256, made.features.index(schema.prior) if schema.prior else -1, made.kernel_hull,
    )  # fmt: skip


def _tree(made: _TreeContent, features: int, what: str) -> Tree:
    tree = Tree(made.feature, made.threshold, made.left, made.right, made.leaf)
    nodes, leaves = len(tree.feature), len(tree.leaf)
    whole = len(tree.threshold) == len(tree.left) == len(tree.right) == nodes == leaves - 1
    # Children stand behind their parents, so that every walk ends.
    forward = all(
        (at < child < nodes) or (-leaves <= child < 0)
        for side in (tree.left, tree.right)
        for at, child in enumerate(side)
    )
    if not whole or not forward or not all(0 <= one < features for one in tree.feature):
        raise SpecError(f"{what} holds a tree whose nodes do not fit together; train it again")
    return tree
