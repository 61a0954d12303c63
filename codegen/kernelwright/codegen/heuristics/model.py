"""A trained model as data: JSON that says what it was trained on, with digests, and nothing that could run."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.violations import SpecError

FORMAT, VERSION = "kernelwright.heuristic", 1
_KEYS = {"format", "version", "op", "dtype", "arch", "schema", "features", "hull", "trees", "provenance", "sha256"}


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
    :ivar dtype: of A in the problems that it was trained on; it judges no others.
    :ivar hull: least and greatest value of each problem feature in its training data.
    :ivar digest: sha256 of its content; also the identity of the compiled model.
    """

    op: str
    dtype: str
    arch: str
    schema: str
    features: tuple[str, ...]
    hull: Mapping[str, tuple[float, float]]
    trees: tuple[Tree, ...]
    provenance: Mapping[str, Any]
    digest: str
    prior: int = -1

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
    features than those of this version.
    """
    try:
        raw = json.loads(Path(path).read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SpecError(f"{str(path)!r} is no model, or a truncated one: {error}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.get("version") != VERSION:
        raise SpecError(f"{str(path)!r} is no model of format {FORMAT} {VERSION}; train one with `tile-engine train`")
    if set(raw) != _KEYS or digest_of(raw) != raw["sha256"]:
        raise SpecError(f"{str(path)!r} was altered: its content does not have the sha256 that it states")
    schema = schema_of(raw["op"])
    if raw["schema"] != schema.digest or raw["features"] != list(schema.features):
        raise SpecError(
            f"{str(path)!r} was trained on other features ({raw['schema'][:12]}) than those of {raw['op']} now "
            f"({schema.digest[:12]}); train it again"
        )
    trees = tuple(_tree(tree, len(schema.features), str(path)) for tree in raw["trees"])
    hull = {name: (float(low), float(high)) for name, (low, high) in raw["hull"].items()}
    return Model(
        raw["op"], raw["dtype"], raw["arch"], raw["schema"], tuple(raw["features"]), hull, trees, raw["provenance"],
        raw["sha256"], raw["features"].index(schema.prior) if schema.prior else -1,
    )  # fmt: skip


def _tree(raw: Mapping[str, Sequence[Any]], features: int, path: str) -> Tree:
    tree = Tree(**{name: tuple(raw[name]) for name in ("feature", "threshold", "left", "right", "leaf")})
    nodes, leaves = len(tree.feature), len(tree.leaf)
    whole = len(tree.threshold) == len(tree.left) == len(tree.right) == nodes == leaves - 1
    # Children stand behind their parents, so that every walk ends.
    forward = all(
        (at < child < nodes) or (-leaves <= child < 0)
        for side in (tree.left, tree.right)
        for at, child in enumerate(side)
    )
    if not whole or not forward or not all(0 <= one < features for one in tree.feature):
        raise SpecError(f"{path!r} holds a tree whose nodes do not fit together")
    return tree
