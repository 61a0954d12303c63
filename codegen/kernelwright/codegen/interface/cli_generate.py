"""``kernelwright generate``: headers and a registry, with the options of the CK Tile dispatcher's generator."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import click

from kernelwright.codegen.interface.cli_parts import Choice, proposing
from kernelwright.codegen.interface.generate import REGISTRY, Wanted, generated_files, wanted_kernels
from kernelwright.codegen.operation import KernelGenerator, operation, operation_names
from kernelwright.codegen.selecting.selection import load_archs


class _Lists(click.Command):
    """Options that take several values, also behind one name: ``--variants standard multi_d``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, after turning ``--x a b`` into ``--x a --x b``."""
        several = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        return super().parse_args(context, list(_repeated(args, several)))


def _repeated(args: Sequence[str], several: set[str]) -> Sequence[str]:
    written: list[str] = []
    current = None
    values = 0
    for arg in args:
        if arg.startswith("-"):
            current, values = (arg, 0) if arg in several else (None, 0)
        elif current is not None:
            values += 1
            if values > 1:
                written.append(current)
        written.append(arg)
    return written


class _Targets(click.Option):
    """An option of architectures, whose error messages list them."""

    def process_value(self, context: click.Context, value: Any) -> Any:
        """Process as click does; MissingParameter lists the architectures."""
        try:
            return super().process_value(context, value)
        except click.MissingParameter:
            allowed = f"allowed: {', '.join(sorted(load_archs()))}"
            raise click.MissingParameter(allowed, context, self) from None


class _Operations(click.Group):
    """One command for each operation with a generator, with the operation's own options."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the names of these operations."""
        return [name for name in operation_names() if operation(name).generator is not None]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Return the command of an operation; None if there is none."""
        if name not in self.list_commands(context):
            return None
        return _command(name, cast(KernelGenerator, operation(name).generator))

    def resolve_command(self, context: click.Context, args: list[str]) -> tuple[Any, Any, list[str]]:
        """Find the command as click does; the error for an unknown one lists the operations."""
        allowed = self.list_commands(context)
        if not (context.resilient_parsing or args[0].startswith("-") or args[0] in allowed):
            text = f"No such command {args[0]!r}; allowed: {', '.join(allowed)}"
            context.fail(proposing(text, args[0], allowed))
        return super().resolve_command(context, args)


@click.group("generate", cls=_Operations)
def generate() -> None:
    """Write headers and a registry of an operation's kernels, with the options of CK Tile's generator."""


def _command(name: str, generator: KernelGenerator) -> click.Command:
    def run(
        output_dir: str,
        targets: tuple[str, ...],
        preselected: str | None,
        config: str | None,
        arch_files: tuple[str, ...],
        **options: tuple[str, ...],
    ) -> None:
        if preselected is not None and config is not None:
            raise click.UsageError("give --preselected or --config, not both")
        write_generated(generator, Wanted(options, targets, preselected, config), arch_files, Path(output_dir))

    own = [
        click.Option(
            [f"--{one.name}"],
            multiple=True,
            type=Choice(one.choices),
            metavar=one.metavar,
            help=one.help,
        )
        for one in generator.options
    ]
    targets_help = "Architectures, CPUs included, e.g. x86_64_v4."
    before = [
        click.Option(["--output-dir"], required=True, metavar="DIR", help="Where headers go, as <arch>/<name>.hpp."),
        _Targets(["--gpu-target", "targets"], multiple=True, required=True, metavar="ARCH…", help=targets_help),
    ]
    after = [
        click.Option(["--preselected"], metavar="SET", help="A set such as fp16_rcr_essential instead."),
        click.Option(
            ["--config"], metavar="FILE", help="A JSON configuration instead, as CK Tile's default_config.json."
        ),
        click.Option(["--arch-file", "arch_files"], multiple=True, metavar="FILE…", help="Architectures of your own."),
    ]
    about = f"""Write the headers of {name} kernels and registry.json, which lists them; print the path of the latter.

    Without --preselected and --config, the preselected sets of the other options. Unchanged files stay as they are;
    what an earlier run wrote into the folder and this one does not is removed. Nothing is written if any combination of
    the options has no kernel.
    """
    return _Lists(name, callback=run, params=[*before, *own, *after], help=inspect.cleandoc(about))


def write_generated(generator: KernelGenerator, wanted: Wanted, arch_files: Sequence[str], folder: Path) -> None:
    """Write what the options describe; counts go to standard error, the registry's path to stdout."""
    from kernelwright.codegen.backends.registry import backend_for
    from kernelwright.codegen.building.sync import sync_folder

    selections = wanted_kernels(generator, wanted, load_archs(arch_files))
    files = generated_files(selections, {item.arch.name: backend_for(item.arch, {}) for item in selections})
    written, removed = sync_folder(folder, files)
    for item in selections:
        click.echo(f"{item.arch.name}: {len(item.kernels)} kernels", err=True)
        for rule, count in item.dropped.items():
            click.echo(f"{item.arch.name}: {count} combinations dropped by {rule}", err=True)
    click.echo(f"{len(files)} files, {written} written, {removed} removed", err=True)
    click.echo(folder / REGISTRY)
