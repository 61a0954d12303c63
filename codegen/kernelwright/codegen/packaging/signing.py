"""The envelope that belongs to a package, and whether it is about that package.

The envelope of a library is in its folder and holds the folder's statement. The envelope of a wheel is beside the
wheel, whose bytes do not change. It holds a statement about the wheel as one file, with the predicate of the statement
inside the wheel.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kernelwright.codegen.packaging import envelope, provenance
from kernelwright.codegen.packaging.contents import digest, read_text
from kernelwright.codegen.packaging.package_files import UnreadableError, wheel_files
from kernelwright.codegen.violations import SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ENDING = ".dsse.json"
LIBRARY_ENVELOPE = f"provenance{ENDING}"


def envelope_of(package: Path) -> Path:
    """Return ``provenance.dsse.json`` in a library's folder, ``<wheel>.dsse.json`` beside a wheel."""
    return package / LIBRARY_ENVELOPE if package.is_dir() else package.with_name(f"{package.name}{ENDING}")


def check_place(key: Path, dist: Path) -> None:
    """Raise SpecError for a private key that a build or others may read, or that would be published with ``dist``.

    A file in a workspace may become the input of a process: its digest, and with a remote cache its bytes, would leave
    the machine.
    """
    place = key.resolve()
    workspace = next((folder for folder in place.parents if (folder / "pants.toml").is_file()), None)
    if workspace is not None:
        raise SpecError(f"{key} lies in the workspace {workspace}, whose files builds may read; move it out of there")
    if dist.resolve() in place.parents:
        raise SpecError(f"{key} lies in {dist}, which is what you publish; move it out of there")
    mode = place.stat().st_mode & 0o777
    if mode & 0o077:
        raise SpecError(f"{key} has mode {mode:03o}, so other users can read it; chmod 600 {key}")


def signed_statement(package: Path, key: Ed25519PrivateKey) -> bytes:
    """Return the envelope for a wheel or the folder of a library, to be written to :func:`envelope_of`.

    The caller has verified the package: what is signed is its statement.
    """
    return envelope.signed(_statement(package), key)


class NotSignedError(Exception):
    """No key signed this package in its present form; the message has the file and the reason."""


def signed_text(package: Path, keys: Sequence[Ed25519PublicKey]) -> bytes:
    """Return the statement of a package that one of ``keys`` signed, as the signed bytes. NotSignedError if none did.

    Bytes are compared, not their meaning: two JSON readers may read one text differently.
    """
    path = envelope_of(package)
    try:
        payload = envelope.opened(read_text(path), keys)
    except FileNotFoundError:
        raise NotSignedError(f"is not signed: {path.name} is missing") from None
    except OSError as error:
        raise NotSignedError(f"{path.name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise NotSignedError(f"{path.name} {error}") from None
    try:
        # A wheel is opened only if its digest is among those that were signed.
        about_this = package.is_dir() or _subject(package) == provenance.subjects_of(provenance.parsed(payload))
        if about_this and payload == _statement(package):
            return payload
    except OSError as error:
        name = Path(str(error.filename)).name
        raise NotSignedError(f"{name} cannot be compared with {path.name}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise NotSignedError(f"cannot be compared with {path.name}: {error}") from None
    raise NotSignedError(f"{path.name} signs another statement, not that of this package")


def _statement(package: Path) -> bytes:
    """Return the text to sign. ValueError or OSError if the package has no statement."""
    if package.is_dir():
        return read_text(package / provenance.FILE)
    try:
        with wheel_files(package) as wheel:
            inner = provenance.parsed(wheel.files.read(provenance.FILE))
            return provenance.statement_text(_subject(package), inner["predicate"]).encode()
    except UnreadableError as error:
        raise ValueError(f"{package.name} {error}") from None
    except KeyError:
        raise ValueError(f"{package.name} has no statement") from None


def _subject(wheel: Path) -> dict[str, str]:
    return {wheel.name: digest(wheel)}
