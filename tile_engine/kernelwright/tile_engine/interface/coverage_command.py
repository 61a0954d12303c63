"""``kernelwright coverage``: which operations of public models libraries serve."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from kernelwright.codegen.interface.cli_parts import Choice
from kernelwright.dispatch import KernelLibrary
from kernelwright.tile_engine.coverage.libraries import planner
from kernelwright.tile_engine.coverage.registry import PROBLEMS
from kernelwright.tile_engine.coverage.served import Share, Shares, shares, total

_BELOW = 1
_DTYPES = ("fp32", "fp16", "bf16")


@click.command("coverage")
@click.argument("libraries", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--operation", "operations", multiple=True, type=Choice(list(PROBLEMS)), help="[default: theirs]")
@click.option("--dtype", "dtypes", multiple=True, type=Choice(_DTYPES), help="[default: fp16, bf16]")
@click.option("--least", type=click.FloatRange(0, 1), help="Exit with 1 if a smaller share is served.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def coverage_command(
    libraries: tuple[Path, ...],
    operations: tuple[str, ...],
    dtypes: tuple[str, ...],
    least: float | None,
    as_json: bool,
) -> None:
    """Plan what public models compute with the kernels of LIBRARIES, all of one architecture.

    Linear layers with their epilogues and gradients, batched and grouped products, convolutions in three directions,
    attention of every use. Nothing is launched and no GPU is needed.
    """
    loaded = [KernelLibrary.load(path) for path in libraries]
    dispatcher, arch = planner(loaded), loaded[0].arch
    have = {str(kernel.spec["op"]) for kernel in dispatcher.kernels}
    chosen = operations or tuple(name for name in PROBLEMS if name in have)
    problems = (one for name in chosen for dtype in dtypes or _DTYPES[1:] for one in PROBLEMS[name](dtype))
    by_use = shares(dispatcher, problems)
    if not by_use:
        raise ValueError(f"the libraries hold kernels of {', '.join(sorted(have))}; allowed: {', '.join(PROBLEMS)}")
    whole = total(by_use)
    click.echo(_json(arch, by_use, whole) if as_json else "\n".join(_lines(arch, by_use, whole)))
    if least is not None and whole.served < least * whole.problems:
        click.echo(f"{_percent(whole)} is served; asked: at least {least:.1%}", err=True)
        sys.exit(_BELOW)


def _json(arch: str, by_use: Shares, whole: Share) -> str:
    uses = [{"operation": op, "use": use, "dtype": dtype, **one.as_json()} for (op, use, dtype), one in by_use.items()]
    return json.dumps({"arch": arch, **whole.as_json(), "uses": uses})


def _lines(arch: str, by_use: Shares, whole: Share) -> Sequence[str]:
    width = max(len(f"{op}: {use}") for op, use, _ in by_use)
    lines = [f"{arch}: {whole.served} of {whole.problems} problems of public models are served, {_percent(whole)}"]
    for (op, use, dtype), one in by_use.items():
        name, counted = f"{op}: {use}", f"{one.served}/{one.problems}"
        lines.append(f"  {name:<{width}}  {dtype:<4}  {counted:>11}  {_percent(one):>6}")
    refused = [(key, one) for key, one in by_use.items() if one.example]
    if refused:
        lines.append("not served, by what kernels say:")
    for (op, use, dtype), one in refused:
        lines.append(f"  {op}: {use}, {dtype}, e.g. {one.example}")
        lines += [f"    {count:>5} x {reason}" for reason, count in one.reasons.most_common(3)]
    return lines


def _percent(one: Share) -> str:
    """Percentage rounded down, so that only complete coverage reads 100 %."""
    return f"{1000 * one.served // one.problems / 10:.1f} %"
