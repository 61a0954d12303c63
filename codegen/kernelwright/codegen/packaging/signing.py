"""Which envelope belongs to a package, and whether it is about that package.

The envelope of a library stands in its folder and holds the folder's statement. The envelope of a wheel stands beside
the wheel, whose bytes do not change. It holds a statement about the wheel as one file, with the predicate of the
statement inside the wheel.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

from kernelwright.codegen.packaging import envelope, provenance
from kernelwright.codegen.violations import SpecError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ENDING = ".dsse.json"
LIBRARY_ENVELOPE = f"provenance{ENDING}"


def envelope_of(package: Path) -> Path:
    """``provenance.dsse.json`` in the folder of a library, ``<wheel>.dsse.json`` beside a wheel."""
    return package / LIBRARY_ENVELOPE if package.is_dir() else package.with_name(f"{package.name}{ENDING}")


def check_place(key: Path, dist: Path) -> None:
    """SpecError for a private key where a build may read it, others may, or it would be published with ``dist``.

    What lies in a workspace may become the input of a process: its digest, and with a remote cache its bytes, would
    leave the machine.
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
    """The envelope for a wheel or the folder of a library, to be written to :func:`envelope_of`.

    The caller has verified the package: what is signed is its statement.
    """
    return envelope.signed(_statement(package), key)


def signature_problem(package: Path, keys: Sequence[Ed25519PublicKey]) -> str | None:
    """Why none of ``keys`` signed this package: the file and the reason. None if one of them did."""
    path = envelope_of(package)
    try:
        payload = envelope.opened(path.read_bytes(), keys)
    except FileNotFoundError:
        return f"is not signed: {path.name} is missing"
    except (OSError, ValueError) as error:
        return f"{path.name} {error}"
    try:
        about_this = json.loads(payload) == json.loads(_statement(package))
    except (OSError, ValueError, RecursionError) as error:
        return f"cannot be compared with {path.name}: {error}"
    return None if about_this else f"{path.name} signs another statement, not that of this package"


def _statement(package: Path) -> bytes:
    """What is signed. ValueError or OSError if the package has no statement."""
    if package.is_dir():
        return (package / provenance.FILE).read_bytes()
    from wheel.wheelfile import WheelError, WheelFile

    try:
        with WheelFile(package) as wheel:
            inner = json.loads(wheel.read(f"{wheel.dist_info_path}/{provenance.FILE}"))
    except (WheelError, BadZipFile, KeyError) as error:
        raise ValueError(f"{package.name} has no statement: {error}") from None
    if not isinstance(inner, dict) or "predicate" not in inner:
        raise ValueError(f"{package.name} has no statement")
    subject = {package.name: provenance.sha256(package.read_bytes())}
    return provenance.statement_text(subject, inner["predicate"]).encode()
