"""The command ``arch``: lists architectures and the contents of their files."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import click

from kernelwright.codegen.interface.cli_complete import complete_arch

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
@click.option("--json", "as_json", is_flag=True, help="As JSON: all that the list has, or the file of NAME.")
def arch(name: str | None, as_json: bool) -> None:
    """List architectures, those of KERNELWRIGHT_ARCH_PATH last: name, backend, compiler's target, device, operations.

    With NAME, print what is legal there: dtypes, layouts, tiles, waves, warp tiles, pipelines. With --json, print its
    file, which can be the start of a new one.
    """
    from kernelwright.codegen.interface.respond import respond_archs
    from kernelwright.codegen.selecting.selection import find_arch, load_archs
    from kernelwright.files import arch_files

    if name is not None:
        document = arch_files.read(find_arch(name, load_archs()).name)[0]
        click.echo(json.dumps(document, indent=1) if as_json else "\n".join(legal(document)))
        return
    listed = respond_archs({"stage": "archs"})["archs"]
    if as_json:
        click.echo(json.dumps(listed, indent=1))
        return
    for one in listed:
        operations = ",".join(one["operations"]) + (" (simulated)" if one["simulated"] else "")
        click.echo(f"{one['name']} {one['backend']} {one['target']} {operations}: {one['device']}")


def legal(file: Mapping[str, Any]) -> Iterator[str]:
    """Yield lines that say what an architecture file allows. Rules refuse some combinations: ``kernelwright rules``."""
    yield f"{file['name']}: {file['device']}; backend {file['backend']}"
    for operation, allowed in file["operations"].items():
        yield ""
        yield operation
        for field, text in _fields(allowed):
            yield f"  {field:<18} {text}"
        for pipeline, facts in allowed["pipelines"].items():
            yield f"  pipeline {pipeline}: {PIPELINES.get(pipeline, 'see its architecture file')}"
            yield from (f"    {field:<16} {text}" for field, text in _pipeline(facts))


def _fields(allowed: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    tiles = allowed.get("warp_tiles", {})
    yield "dtypes", ", ".join(allowed.get("dtypes", map(_dtypes, tiles)))
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


def _pipeline(facts: Any) -> Iterator[tuple[str, str]]:
    if isinstance(facts, list):
        yield "families", ", ".join(facts)
        return
    for field, value in facts.items():
        if isinstance(value, bool):
            yield field.replace("_", " "), "yes" if value else "no"
        else:
            yield field.replace("_", " "), _values(value)


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
