"""``kernelwright cache``: the size of a cache, and eviction."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_DEFAULT_BYTES, _DEFAULT_AGE_S = 5 * 10**9, 30.0 * 86400


def _bytes(context: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,3})?) ?([A-Za-z]*)", text)
    if match is None or match[2].upper() not in _UNITS:
        raise click.BadParameter(f"{text!r}: write a number and a unit, such as 5GB, 500MB or 2GiB")
    return int(float(match[1]) * _UNITS[match[2].upper()])


def _seconds(context: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d{1,9}(?:\.\d{1,3})?) ?([smhdw])", text)
    if match is None:
        raise click.BadParameter(f"{text!r}: write a number and s, m, h, d or w, such as 30d or 12h")
    return float(match[1]) * _SECONDS[match[2]]


@click.command("cache")
@click.option("--cache", "folder", metavar="DIR", help="Default: $KERNELWRIGHT_CACHE, else in the user's cache folder.")
@click.option("--size", "show", is_flag=True, help="Print what the cache holds (the default).")
@click.option("--prune", "remove", is_flag=True, help="Remove results, the least recently used first.")
@click.option("--max-size", callback=_bytes, metavar="SIZE", help="Prune until no more is left, such as 5GB.")
@click.option("--max-age", callback=_seconds, metavar="AGE", help="Prune what was not used for this long, such as 30d.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def cache(
    folder: str | None, show: bool, remove: bool, max_size: int | None, max_age: float | None, as_json: bool
) -> None:
    """Show the size of the cache of compiled kernels, or remove the least recently used results.

    --prune without a limit keeps 5 GB of what was used within 30 days. What running builds use stays.
    """
    from kernelwright.codegen.building.cache_folder import default_cache
    from kernelwright.codegen.building.eviction import KINDS, entries, prune

    root = Path(folder) if folder else default_cache()
    if not remove and (max_size is not None or max_age is not None):
        raise click.UsageError("--max-size and --max-age are limits of --prune; add it")
    summary: dict[str, object] = {"cache": str(root.absolute())}
    if remove:
        if max_size is None and max_age is None:
            max_size, max_age = _DEFAULT_BYTES, _DEFAULT_AGE_S
        done = prune(root, max_size, max_age)
        summary |= {"removed": done.removed, "removed_bytes": done.removed_bytes, "kept_in_use": done.in_use}
    if show or not remove or as_json:
        kept = entries(root)
        summary |= {"entries": len(kept), "bytes": sum(entry.size for entry in kept)}
        summary["kinds"] = {kind: sum(entry.size for entry in kept if entry.kind == kind) for kind in KINDS}
    click.echo(json.dumps(summary) if as_json else _text(summary))


def _text(summary: dict[str, object]) -> str:
    lines = [str(summary["cache"])]
    if "removed" in summary:
        kept = f"; {summary['kept_in_use']} more are in use" if summary["kept_in_use"] else ""
        lines.append(f"removed {_entries(summary['removed'])}, {_megabytes(summary['removed_bytes'])}{kept}")
    if "entries" in summary:
        lines.append(f"{_entries(summary['entries'])}, {_megabytes(summary['bytes'])}")
        kinds = summary["kinds"]
        assert isinstance(kinds, dict)
        lines += [f"  {kind}: {_megabytes(size)}" for kind, size in kinds.items()]
    return "\n".join(lines)


def _entries(count: object) -> str:
    return "1 entry" if count == 1 else f"{count} entries"


def _megabytes(size: object) -> str:
    assert isinstance(size, int)
    return f"{size / 1e6:.1f} MB"
