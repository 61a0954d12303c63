"""Gradient-boosted trees for an operation, element type and architecture; whole model families are held out in turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.codegen.heuristics.schema import Schema
from kernelwright.tile_engine.learning.evaluate import Evaluation, evaluate
from kernelwright.tile_engine.learning.examples import Examples

FOLDS = 5
LEAST_WEIGHT = 0.02


@dataclass(frozen=True)
class Options:
    """Options of LightGBM. ``seed`` fixes all random draws: equal data give equal models.

    :ivar focus: a row is weighted by its fraction of the problem's fastest rate, to this power, but at least
        LEAST_WEIGHT: the order of the fastest kernels matters more than how slow the slowest one is.
    :ivar evenness: a row is also weighted by one over the number of its problem's rows, to this power: with 0, problems
        that leave more open weigh more; with 1, all problems weigh the same.
    """

    trees: int = 300
    leaves: int = 31
    learning_rate: float = 0.05
    least_rows: int = 10
    features_of_tree: float = 0.8
    focus: float = 4.0
    seed: int = 42
    evenness: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """JSON values; an evenness of 0 is omitted, as in models trained before the option existed."""
        return {name: value for name, value in vars(self).items() if name != "evenness" or value}


@dataclass(frozen=True)
class Trained:
    """Contents of a model without its digest, and its quality on families unseen by its folds."""

    content: dict[str, Any]
    evaluation: Evaluation


def train(
    examples: Examples, schema: Schema, dtypes: Sequence[str], arch: str, options: Options, data: Sequence[str]
) -> Trained:
    """Train a model of log(1 + TFLOP/s), in which small problems weigh as much as large ones.

    If the schema has a prior, trees correct it: the model predicts log(TFLOP/s), and an error of the prior common to
    all kernels of a problem is not learned, as it decides nothing. ``dtypes`` are those of the problems that the model
    ranks, that of the examples first; ``data`` states the origin of the examples. Raises ValueError for examples of
    fewer than two families, as nothing could be held out, and RuntimeError if LightGBM is not installed.
    """
    if len(examples.families) < 2:
        raise ValueError(
            f"all problems are of one family ({', '.join(examples.families)}); add problems of another one"
        )
    columns = {name: index for index, name in enumerate(schema.features)}
    prior = examples.features[:, columns[schema.prior]] if schema.prior else None
    target = np.log1p(examples.tflops) if prior is None else within(examples, np.log(examples.tflops) - prior, options)
    scores = np.zeros(len(examples.tflops)) if prior is None else prior.copy()
    for fold in _folds(examples):
        scores[fold] += _fitted(examples.of(~fold), target[~fold], options).predict(examples.features[fold])
    evaluation = evaluate(examples, scores)
    booster = _fitted(examples, target, options)
    hull = {
        name: [float(examples.features[:, columns[name]].min()), float(examples.features[:, columns[name]].max())]
        for name in schema.problem_features
    }
    content = {
        "op": schema.op,
        "dtypes": list(dtypes),
        "arch": arch,
        "schema": schema.digest,
        "features": list(schema.features),
        "hull": hull,
        "kernel_hull": {name: list(bounds) for name, bounds in examples.kernel_hull.items()},
        "trees": [flat(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]],
        "provenance": {
            "data": list(data),
            "rows": len(examples.tflops),
            "problems": evaluation.problems,
            "families": sorted(examples.families),
            "options": options.as_json(),
            "held_out_families_in_turn": evaluation.as_json(),
        },
    }
    return Trained(content, evaluation)


def _folds(examples: Examples) -> list[np.ndarray[Any, Any]]:
    """Rows of each fold: whole families, so that no model has seen its validation families."""
    count = min(FOLDS, len(examples.families))
    return [examples.family % count == number for number in range(count)]


def shares(examples: Examples) -> np.ndarray[Any, Any]:
    """The rate of each row divided by that of the problem's fastest kernel."""
    fastest = np.zeros(int(examples.problem.max()) + 1)
    np.maximum.at(fastest, examples.problem, examples.tflops)
    return np.asarray(examples.tflops / fastest[examples.problem])


def weights(examples: Examples, options: Options) -> np.ndarray[Any, Any]:
    """The weight of each row, see :class:`Options`; the minimum for kernels that were too slow to be timed."""
    focused = np.where(examples.slow, LEAST_WEIGHT, np.maximum(shares(examples) ** options.focus, LEAST_WEIGHT))
    return np.asarray(focused / np.bincount(examples.problem)[examples.problem] ** options.evenness)


def within(examples: Examples, values: np.ndarray[Any, Any], options: Options) -> np.ndarray[Any, Any]:
    """Difference of each row from the weighted mean of its problem's timed rows.

    A kernel that was too slow to be timed differs downwards, or not at all if it was known to be that slow.
    """
    weight = np.where(examples.slow, 0.0, weights(examples, options))
    means = np.bincount(examples.problem, weight * values) / np.bincount(examples.problem, weight)
    differing = values - means[examples.problem]
    return np.asarray(np.where(examples.slow, np.minimum(differing, 0.0), differing))


def _fitted(examples: Examples, target: np.ndarray[Any, Any], options: Options) -> Any:
    try:
        import lightgbm
    except ImportError as error:
        raise RuntimeError("training needs LightGBM; pip install 'kernelwright[heuristics]'") from error
    given = {
        **{"objective": "regression", "num_leaves": options.leaves, "learning_rate": options.learning_rate},
        **{"min_data_in_leaf": options.least_rows, "feature_fraction": options.features_of_tree},
        **{"seed": options.seed, "deterministic": True, "verbosity": -1},
        **{"force_row_wise": True, "num_threads": 1, "boost_from_average": False},
    }
    weight = weights(examples, options)
    data = lightgbm.Dataset(examples.features, target, weight=weight, free_raw_data=False)
    return lightgbm.train(given, data, options.trees)


def flat(root: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Flatten a tree of LightGBM's dump into lists: parents before children, leaves numbered downwards from -1.

    Raises ValueError for a split that is not a comparison with a number.
    """
    tree: dict[str, list[Any]] = {name: [] for name in ("feature", "threshold", "left", "right", "leaf")}
    _add(root, tree)
    return tree


def _add(node: Mapping[str, Any], tree: dict[str, list[Any]]) -> int:
    if "leaf_value" in node:
        tree["leaf"].append(float(f"{node['leaf_value']:.6g}"))  # keeps files small; rates are not known more precisely
        return -len(tree["leaf"])
    if node["decision_type"] != "<=":
        raise ValueError(f"a tree splits by {node['decision_type']!r}; allowed: '<='")
    at = len(tree["feature"])
    tree["feature"].append(int(node["split_feature"]))
    tree["threshold"].append(float(f"{node['threshold']:.9g}"))
    tree["left"].append(0)
    tree["right"].append(0)
    tree["left"][at] = _add(node["left_child"], tree)
    tree["right"][at] = _add(node["right_child"], tree)
    return at
