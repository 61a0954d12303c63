"""``kernelwright tile-engine train``, ``evaluate`` and ``validate``: learned selection."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kernelwright.arch import load

if TYPE_CHECKING:
    from kernelwright.codegen.heuristics.model import Model
    from kernelwright.codegen.heuristics.schema import Schema
    from kernelwright.tile_engine.learning.examples import Examples
    from kernelwright.tile_engine.results.analysis import Efficiency

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PATH = click.Path(path_type=Path)


def _data_options(library_needed: bool = True) -> Callable[[_Command], _Command]:
    kernels = "Its kernels' library, or a list of specs."
    options = (
        click.option("--table", "tables", required=True, multiple=True, type=_PATH, help="A CSV file of `bench`."),
        click.option("--library", "libraries", required=library_needed, multiple=True, type=_PATH, help=kernels),
        click.option("--too-slow", is_flag=True, help="Count kernels that were too slow to be timed, as half as fast."),
        click.option("--units", type=int, help="Compute units or cores [default: the architecture's, or this CPU's]."),
    )

    def added(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


@click.command("train")
@_data_options()
@click.option("--arch", required=True, help="The architecture.")
@click.option("--dtype", required=True, help="Element type of A.")
@click.option("--also", multiple=True, help="Another element type of the size of --dtype that the model ranks too.")
@click.option("--variant", help="The operation [default: that of the tables' columns].")
@click.option("--output", required=True, type=_PATH, help="The model, a JSON file for `kernelwright heuristic`.")
@click.option("--trees", default=300, show_default=True, type=click.IntRange(1), help="Trees of the model.")
@click.option("--leaves", default=31, show_default=True, type=click.IntRange(2), help="Leaves of a tree.")
@click.option(
    "--learning-rate", default=0.05, show_default=True, help="What a tree mends of what those before it miss."
)
@click.option("--evenness", default=0.0, show_default=True, help="Let problems weigh alike: 0 not at all, 1 wholly.")
def train_command(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], too_slow: bool, units: int | None, arch: str, dtype: str,
    also: tuple[str, ...], variant: str | None, output: Path, trees: int, leaves: int, learning_rate: float,
    evenness: float,
) -> None:  # fmt: skip
    """Train a selector on tables, and say how good it is on model families that it has not seen.

    Kernels of two element types of one size that differ in nothing else take the same times: with --also, a model that
    was trained on one of them ranks problems of the other as well.
    """
    from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
    from kernelwright.codegen.heuristics.model import write_model
    from kernelwright.codegen.heuristics.schema import schema_of
    from kernelwright.tile_engine.learning.train import Options, train
    from kernelwright.tile_engine.registry import operation_of_columns
    from kernelwright.tile_engine.results.csv_file import read_columns

    for other in also:
        if ELEMENT_BYTES[DType(other)] != ELEMENT_BYTES[DType(dtype)]:
            raise ValueError(f"--also is {other}; allowed: element types of the size of {dtype}")
    schema = schema_of(variant or operation_of_columns(read_columns(tables[0])).name)
    examples = _examples(tables, libraries, too_slow, units, arch, (dtype,), schema)
    named = [table.name for table in tables]
    settings = Options(trees, leaves, learning_rate, evenness=evenness)
    trained = train(examples, schema, (dtype, *also), arch, settings, named)
    if too_slow:
        trained.content["provenance"]["too_slow"] = True
    write_model(trained.content, output)
    click.echo(f"families held out in turn, {trained.evaluation}")
    click.echo(f"{output} written", err=True)


@click.command("evaluate")
@_data_options(library_needed=False)
@click.option("--model", "path", type=_PATH, help="A model of `train` [default: the dispatcher's choices alone].")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def evaluate_command(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], too_slow: bool, units: int | None, path: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compare a model's choices, and the dispatcher's when the tables were measured, with the fastest kernels."""
    from kernelwright.tile_engine.learning.evaluate import Evaluation, evaluate

    evaluations: dict[str, Evaluation | Efficiency] = {}
    head: dict[str, str] = {}
    only: dict[str, tuple[str, ...]] = {}
    if path is not None:
        if not libraries:
            raise ValueError("a model scores kernels by their specs; add --library, the folder of the tables' kernels")
        model, examples, scores = _scored(tables, libraries, too_slow, units, path)
        head, only = {"sha256": model.digest}, {"dtype": model.dtypes, "arch": (model.arch,)}
        evaluations["model"] = evaluate(examples, scores)
    if (chosen := _dispatched(tables, only)) is not None:
        evaluations["dispatcher"] = chosen
    if not evaluations:
        raise ValueError("no row of the tables is marked as selected, so there is no choice to compare")
    if as_json:
        click.echo(json.dumps({**head, **{name: one.as_json() for name, one in evaluations.items()}}))
        return
    for name, one in evaluations.items():
        click.echo(f"{name}: {one}")


@click.command("validate")
@_data_options()
@click.option("--model", "path", required=True, type=_PATH, help="A model of `train`.")
@click.option("--least", default=0.95, show_default=True, help="Mean share of the fastest kernels' speed to reach.")
@click.option("--png", type=_PATH, help="A chart of measured over predicted rates.")
def validate_command(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], too_slow: bool, units: int | None, path: Path, least: float,
    png: Path | None,
) -> None:  # fmt: skip
    """Fail unless a model's choices reach a share of the fastest kernels' speed on tables it was not trained on."""
    from kernelwright.tile_engine.learning.evaluate import evaluate

    model, examples, scores = _scored(tables, libraries, too_slow, units, path)
    trained_on = model.provenance.get("data", [])
    if seen := sorted(table.name for table in tables if isinstance(trained_on, list) and table.name in trained_on):
        raise ValueError(f"the model was trained on {', '.join(seen)}; validate it on another table")
    if png:
        from kernelwright.tile_engine.report.charts import predicted_rates, save_png

        save_png(predicted_rates(examples.tflops.tolist(), list(map(model.rate, scores.tolist()))), png)
    evaluation = evaluate(examples, scores)
    click.echo(str(evaluation))
    if evaluation.mean < least:
        raise ValueError(f"the mean share is {evaluation.mean:.4f}; allowed: at least {least}")


def _dispatched(tables: tuple[Path, ...], only: Mapping[str, tuple[str, ...]]) -> Efficiency | None:
    """Efficiency of the dispatcher's choices on the problems of all tables; None if no row is marked as selected."""
    from kernelwright.tile_engine.results.analysis import selection_efficiency, timed
    from kernelwright.tile_engine.results.csv_file import read_tables

    rows = read_tables(tables)
    return selection_efficiency(timed(row for row in rows if all(row[name] in values for name, values in only.items())))


def _examples(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], too_slow: bool, units: int | None, arch: str,
    dtypes: tuple[str, ...], schema: Schema,
) -> Examples:  # fmt: skip
    from kernelwright.tile_engine.learning.examples import examples_of, read_specs
    from kernelwright.tile_engine.results.csv_file import read_rows

    each = [read_rows(table) for table in tables]
    numbers = [{row["problem_idx"] for row in rows} for rows in each]
    if sum(map(len, numbers)) > len(set().union(*numbers)):
        shared = "tables share problem numbers; of one number, kernel and choice the last row counts"
        click.echo(f"warning: {shared}", err=True)
    rows = [row for rows in each for row in rows]
    loaded = load(arch)
    count = units or loaded.compute_units or len(os.sched_getaffinity(0))
    return examples_of(rows, read_specs(libraries, loaded), schema, dtypes, loaded, count, too_slow)


def _scored(
    tables: tuple[Path, ...], libraries: tuple[Path, ...], too_slow: bool, units: int | None, path: Path
) -> tuple[Model, Examples, Any]:
    import numpy as np

    from kernelwright.codegen.heuristics.model import read_model
    from kernelwright.codegen.heuristics.schema import schema_of

    model = read_model(path)
    examples = _examples(tables, libraries, too_slow, units, model.arch, model.dtypes, schema_of(model.op))
    return model, examples, np.array([model.predict(row) for row in examples.features.tolist()])
