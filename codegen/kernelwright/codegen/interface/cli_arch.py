"""The command ``arch``: which architectures there are, and what their files say."""

from __future__ import annotations

import json

import click

from kernelwright.codegen.interface.cli_complete import complete_arch


@click.command("arch")
@click.argument("name", required=False, shell_complete=complete_arch)
@click.option("--json", "as_json", is_flag=True, help="All that the list has, as JSON.")
def arch(name: str | None, as_json: bool) -> None:
    """List architectures, those of KERNELWRIGHT_ARCH_PATH last: name, backend, compiler's target, device, operations.

    With NAME, print the file of that one, which can be the start of a new one.
    """
    from kernelwright.codegen.interface.respond import respond_archs
    from kernelwright.codegen.selecting.selection import find_arch, load_archs
    from kernelwright.files import arch_files

    if name is not None:
        found = find_arch(name, load_archs())
        click.echo(json.dumps(arch_files.read(found.name)[0], indent=1))
        return
    listed = respond_archs({"stage": "archs"})["archs"]
    if as_json:
        click.echo(json.dumps(listed, indent=1))
        return
    for one in listed:
        operations = ",".join(one["operations"]) + (" (simulated)" if one["simulated"] else "")
        click.echo(f"{one['name']} {one['backend']} {one['target']} {operations}: {one['device']}")
