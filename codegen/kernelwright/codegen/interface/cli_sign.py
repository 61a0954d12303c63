"""``kernelwright sign`` and ``verify``: sign the packages in a folder, and compare them with what was signed."""

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
    from kernelwright.codegen.packaging.contents import contents
    from kernelwright.codegen.packaging.envelope import read_private_key
    from kernelwright.codegen.packaging.signing import check_place, envelope_of, signed_statement
    from kernelwright.codegen.packaging.verify import verify

    private = read_private_key(key)
    check_place(key, dist)
    wrong = [verdict for verdict in verify(dist) if verdict.problems]
    if wrong:
        show_verdicts(wrong)
        return EXIT_MISMATCH
    packages = contents(dist)
    for package in (*packages.wheels, *packages.folders):
        target = envelope_of(package)
        write_atomically(target, signed_statement(package, private))
        click.echo(target)
    return 0


@click.command("verify")
@click.argument("dist", type=click.Path(path_type=Path))
@click.option(
    "--materials",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="What packages were made of must be here: toolchain wheels, a checkout; may be repeated.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PUBLIC.pem",
    help="Refuse what is not signed by this Ed25519 key; may be repeated: by one of them.",
)
def verify_packages(dist: Path, materials: tuple[Path, ...], keys: tuple[Path, ...]) -> int:
    """Compare wheels and libraries below DIST with their provenance statements and signatures; offline.

    Exit code 3: they differ, the key did not sign them, or, with a key, DIST holds anything else.
    """
    from kernelwright.codegen.packaging.envelope import read_public_key
    from kernelwright.codegen.packaging.verify import verify

    verdicts = verify(dist, materials, [read_public_key(key) for key in keys])
    show_verdicts(verdicts, ", signed" if keys else "")
    return EXIT_MISMATCH if any(verdict.problems for verdict in verdicts) else 0


def show_verdicts(verdicts: Sequence[Verdict], also: str = "") -> None:
    """Print one line per package and one per problem; ``also`` is appended to packages without problems."""
    for verdict in verdicts:
        count = len(verdict.problems)
        wrong = f"{count} problem{'s' * (count != 1)}"
        click.echo(_shown(f"{verdict.package}: {wrong if count else f'ok, {verdict.subjects} files{also}'}"))
        for problem in verdict.problems:
            click.echo(_shown(f"  {problem}"))


def _shown(line: str) -> str:
    """Escape a line so that no name in it can pretend to be another line or move the cursor."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in line)
