"""The command ``arch``: lists architectures and the contents of their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from kernelwright.codegen.interface.cli_complete import complete_arch

if TYPE_CHECKING:
    from kernelwright.arch import Arch

PIPELINES = {
    "appendkv": "copies new keys and values into a cache, rotated if asked",
    "basic_async_v1": "loads go from memory to LDS without registers between",
    "bwd": "gradients in several kernels: row sums, then dQ, dK and dV, then conversion",
    "combine": "adds up the parts of split keys by their softmax",
    "comp_async": "loads go from memory to LDS without registers between; two LDS buffers in turn",
    "compv1": "one LDS buffer, one tile loaded ahead",
    "compv3": "one LDS buffer, tiles loaded ahead into registers; for problems that arithmetic bounds",
    "compv4": "two LDS buffers in turn; for large tiles that arithmetic bounds",
    "compv6": "as compv3, with two tiles in registers",
    "cp_async": "threads copy rows from any address, warps multiply by mma.sync; for what TMA cannot read or write",
    "direct": "no matrix instructions: few channels, or one for each group",
    "mem": "several tiles loaded ahead; for problems that memory bounds",
    "mma": "loads by cp.async and mma.sync instructions; for few queries",
    "narrow": "as compv3, elements loaded one by one: rows of any length and alignment",
    "packed": "operands are copied into blocks that fit the caches",
    "preshufflev2": "B lies in the order in which lanes multiply it, see shuffle_b",
    "qr": "Q in registers, K and V through LDS",
    "qr_async": "as qr, K goes from memory to LDS without registers between",
    "qr_async_trload": "as qr_async, V is transposed by loads from LDS",
    "qr_async_trload_v3": "as qr_async_trload, scheduled as v3",
    "qr_nwarp_sshuffle": "as qr, waves side by side along keys",
    "qr_pagedkv": "as qr, K and V in pages",
    "qs": "Q in LDS; for large head dimensions",
    "tma": "tiles loaded by TMA, one warp group loads and others multiply by WGMMA",
    "v3": "two groups of waves in turn: one multiplies while the other computes its softmax",
    "wavelet": "some waves load, others multiply",
}
"""Description of each pipeline for people; a test compares the keys with the architecture files."""


@click.command("arch")
@click.argument("name", required=False, shell_complete=complete_arch)
@click.option("--json", "as_json", is_flag=True, help="As JSON: the whole list, or the file of NAME and the table.")
def arch(name: str | None, as_json: bool) -> None:
    """List architectures, those of KERNELWRIGHT_ARCH_PATH last: name, backend, compiler's target, device, operations.

    With NAME, print what is legal there: dtypes, layouts, tiles, waves, warp tiles, pipelines. With --json, print its
    file, and under "legal" what the table says. Norms have no section in such files: their values are of norm:all.
    """
    from kernelwright.codegen.interface.respond import respond_archs
    from kernelwright.codegen.selecting.selection import find_arch, load_archs
    from kernelwright.files import arch_files

    known = load_archs()
    if name is not None:
        found = find_arch(name, known)
        document = arch_files.read(found.name)[0]
        allowed = legal(document, found)
        whole = {**document, "legal": allowed}
        click.echo(json.dumps(whole, indent=1) if as_json else "\n".join(table(document, allowed)))
        return
    listed = [
        {**one, "operations": sorted([*one["operations"], *_without_section(known[one["name"]])])}
        for one in respond_archs({"stage": "archs"})["archs"]
    ]
    if as_json:
        click.echo(json.dumps(listed, indent=1))
        return
    for one in listed:
        operations = ",".join(one["operations"]) + (" (simulated)" if one["simulated"] else "")
        click.echo(f"{one['name']} {one['backend']} {one['target']} {operations}: {one['device']}")


def legal(file: Mapping[str, Any], arch: Arch) -> dict[str, dict[str, Any]]:
    """Return what is allowed, by operation. Rules refuse some combinations: ``kernelwright rules``.

    For an operation without a section in architecture files, these are the values of fields in its largest set.
    """
    allowed: dict[str, dict[str, Any]] = {}
    for operation, section in file["operations"].items():
        dtypes = list(section.get("dtypes", map(_dtypes, section.get("warp_tiles", {}))))
        pipelines = {name: _with_meaning(name, facts) for name, facts in section["pipelines"].items()}
        allowed[operation] = {**section, "dtypes": dtypes, "pipelines": pipelines}
    return allowed | _without_section(arch)


def _with_meaning(pipeline: str, facts: Any) -> dict[str, Any]:
    meaning = PIPELINES.get(pipeline, "see its architecture file")
    return {"meaning": meaning, **({"families": facts} if isinstance(facts, list) else facts)}


def _without_section(arch: Arch) -> dict[str, dict[str, Any]]:
    """Return the values of fields in the largest set of each operation that needs no section in architecture files."""
    from kernelwright.codegen.kernel import flat_values
    from kernelwright.codegen.operation import operation, operation_names
    from kernelwright.codegen.violations import SpecError

    found: dict[str, dict[str, Any]] = {}
    for name in operation_names():
        sets = operation(name).sets
        try:
            specs = [] if name in arch.operations else [one.spec for one in sets.expand(sets.names()[-1], arch).kernels]
        except SpecError:  # the architecture leaves its section out, so it has no kernels
            continue
        rows = [flat_values(spec) for spec in specs]
        if rows:
            found[name] = {field: [*dict.fromkeys(row[field] for row in rows)] for field in rows[0] if field != "op"}
    return found


def table(file: Mapping[str, Any], allowed: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines that say what :func:`legal` returns."""
    yield f"{file['name']}: {file['device']}; backend {file['backend']}"
    for operation, facts in allowed.items():
        yield ""
        yield operation
        shown = _fields(facts) if operation in file["operations"] else _rows(facts)
        yield from (f"  {field:<18} {text}" for field, text in shown)
        for pipeline, details in facts.get("pipelines", {}).items():
            yield f"  pipeline {pipeline}: {details['meaning']}"
            others = {name: value for name, value in details.items() if name != "meaning"}
            yield from (f"    {field:<16} {text}" for field, text in _rows(others))


def _fields(allowed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "dtypes", ", ".join(allowed["dtypes"])
    for field in ("layouts", "depthwise_layouts", "masks"):
        if field in allowed:
            yield field.replace("_", " "), ", ".join(allowed[field])
    yield "tile", ", ".join(f"{name} {_values(values)}" for name, values in allowed["tile"].items())
    for field in ("waves", "clusters"):
        if field in allowed:
            yield field, ", ".join(map(_extents, allowed[field]))
    for field in ("warp_tiles", "preshuffle_warp_tiles", "hdims"):
        for dtype, extents in allowed.get(field, {}).items():
            yield f"{field.removesuffix('s').replace('_', ' ')} {_dtypes(dtype)}", ", ".join(map(_extents, extents))
    for dtype, outputs in allowed.get("outputs", {}).items():
        yield f"result {_dtypes(dtype)}", ", ".join(outputs)


def _rows(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for field, value in facts.items():
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else _values(value)
        yield field.replace("_", " "), text


def _dtypes(words: str) -> str:
    """Shorten ``fp16_fp16_fp32``, the types of A, B and sums, to ``fp16``, and ``fp8_bf8_fp32`` to ``fp8 x bf8``."""
    a, _, rest = words.partition("_")
    b = rest.partition("_")[0] or a
    return a if a == b else f"{a} x {b}"


def _extents(extents: Any) -> str:
    return " x ".join(str(extent) if isinstance(extent, int) else f"({_values(extent)})" for extent in extents)


def _values(values: Any) -> str:
    if isinstance(values, Mapping):
        step = f" by {values['step']}" if values.get("step", 1) != 1 else ""
        return f"{values['min']} to {values['max']}{step}"
    if isinstance(values, list):
        return ", ".join({True: "yes", False: "no"}[one] if isinstance(one, bool) else str(one) for one in values)
    return str(values)
