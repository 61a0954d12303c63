"""``kernelwright generate``: headers and a registry, with the options of the CK Tile dispatcher's generator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from kernelwright.codegen.spec import VARIANTS, Layout

_DTYPES = ("fp32", "fp16", "bf16", "fp8", "bf8", "int8")


class _Lists(click.Command):
    """Options that take several values, also behind one name: ``--variants standard multi_d``."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """What click does, after ``--x a b`` became ``--x a --x b``."""
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


@click.command("generate", cls=_Lists)
@click.option("--output-dir", required=True, metavar="DIR", help="Where headers go, as <arch>/<name>.hpp.")
@click.option(
    "--gpu-target",
    "targets",
    multiple=True,
    required=True,
    metavar="ARCH…",
    help="Architectures; CPUs are some too, e.g. x86_64_v4.",
)
@click.option(
    "--datatype", "datatypes", multiple=True, type=click.Choice(_DTYPES), metavar="TYPE…", help="Default: fp16."
)
@click.option(
    "--layout",
    "layouts",
    multiple=True,
    type=click.Choice([str(layout) for layout in Layout]),
    metavar="LAYOUT…",
    help="Row- or column-major of A, B and C; default: rcr.",
)
@click.option(
    "--variants",
    multiple=True,
    type=click.Choice(VARIANTS),
    metavar="VARIANT…",
    help=f"Of {', '.join(VARIANTS)}. Default: standard, or all that --preselected or --config holds.",
)
@click.option("--preselected", metavar="SET", help="A set such as fp16_rcr_essential instead.")
@click.option("--config", metavar="FILE", help="A JSON configuration instead, as CK Tile's default_config.json.")
@click.option("--arch-file", "arch_files", multiple=True, metavar="FILE…", help="Architectures of your own.")
def generate(
    output_dir: str,
    targets: tuple[str, ...],
    datatypes: tuple[str, ...],
    layouts: tuple[str, ...],
    variants: tuple[str, ...],
    preselected: str | None,
    config: str | None,
    arch_files: tuple[str, ...],
) -> None:
    """Write the headers of kernels and registry.json, which lists them, and print the path of the latter.

    Without --preselected and --config, the preselected sets of data type, layout and variants. Unchanged files stay as
    they are; what an earlier run wrote into the folder and this one does not is removed. Nothing is written if any
    combination of the options has no kernel.
    """
    if preselected is not None and config is not None:
        raise click.UsageError("give --preselected or --config, not both")
    from kernelwright.codegen.backends import backend_for
    from kernelwright.codegen.generate import REGISTRY, Wanted, generated_files, wanted_kernels
    from kernelwright.codegen.select import load_archs
    from kernelwright.codegen.sync import sync_folder

    wanted = Wanted(datatypes, layouts, targets, variants, preselected, config)
    selections = wanted_kernels(wanted, load_archs(arch_files))
    files = generated_files(selections, {item.arch.name: backend_for(item.arch, {}) for item in selections})
    written, removed = sync_folder(Path(output_dir), files)
    for item in selections:
        click.echo(f"{item.arch.name}: {len(item.kernels)} kernels", err=True)
        for rule, count in item.dropped.items():
            click.echo(f"{item.arch.name}: {count} combinations dropped by {rule}", err=True)
    click.echo(f"{len(files)} files, {written} written, {removed} removed", err=True)
    click.echo(Path(output_dir, REGISTRY))
