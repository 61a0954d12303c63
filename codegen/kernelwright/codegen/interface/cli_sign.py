"""``kernelwright sign``: sign the packages in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kernelwright.codegen.interface.exit_codes import EXIT_MISMATCH

if TYPE_CHECKING:
    from kernelwright.codegen.packaging.verify import Verdict


@click.command("sign")
@click.argument("dist", type=click.Path(path_type=Path))
@click.option(
    "--key",
    required=True,
    type=click.Path(path_type=Path),
    metavar="PRIVATE.pem",
    envvar="KERNELWRIGHT_SIGNING_KEY",
    show_envvar=True,
    help="An Ed25519 key in PEM without password, outside of every workspace and readable by you alone: "
    "openssl genpkey -algorithm ed25519 -out PRIVATE.pem",
)
def sign(dist: Path, key: Path) -> int:
    """Sign every wheel and library below DIST: write a DSSE envelope of its provenance statement.

    Prints the files that it writes. Exit code 3: a package is not what its statement says; then nothing is signed.
    """
    from kernelwright.codegen.building.store import write_atomically
    from kernelwright.codegen.packaging.envelope import read_private_key
    from kernelwright.codegen.packaging.signing import check_place, envelope_of, signed_statement
    from kernelwright.codegen.packaging.verify import packaged_folders, packaged_wheels, verify

    private = read_private_key(key)
    check_place(key, dist)
    wrong = [verdict for verdict in verify(dist) if verdict.problems]
    if wrong:
        show_verdicts(wrong)
        return EXIT_MISMATCH
    for package in (*packaged_wheels(dist), *packaged_folders(dist)):
        target = envelope_of(package)
        write_atomically(target, signed_statement(package, private))
        click.echo(target)
    return 0


def show_verdicts(verdicts: Sequence[Verdict], also: str = "") -> None:
    """Print one line per package, one per problem; ``also`` is what is known of those without problems."""
    for verdict in verdicts:
        count = len(verdict.problems)
        wrong = f"{count} problem{'s' * (count != 1)}"
        click.echo(f"{verdict.package}: {wrong if count else f'ok, {verdict.subjects} files{also}'}")
        for problem in verdict.problems:
            click.echo(f"  {problem}")
