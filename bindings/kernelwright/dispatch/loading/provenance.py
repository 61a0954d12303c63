"""The provenance statement beside a manifest: a library is not loaded with the statement of another one."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from kernelwright.dispatch.core.errors import DigestMismatchError
from kernelwright.dispatch.loading.manifest import Manifest
from kernelwright.files.strict_json import read_json

_FILE = "provenance.json"


def check_statement(manifest: Manifest) -> None:
    """Compare statement, manifest and library: each names the digest of another, so none can be changed alone.

    A library that was built without a statement passes. Raises DigestMismatchError if the manifest names one that is
    missing, cannot be read, or describes other files or another build.
    """
    path = manifest.path.with_name(_FILE)
    try:
        statement = read_json(path)
        predicate, subjects = statement["predicate"], statement["subject"]
        stated = {entry["name"]: entry["digest"]["sha256"] for entry in subjects}
    except FileNotFoundError:
        if manifest.provenance_sha256 is not None:
            raise DigestMismatchError(f"{path} is not there, though {manifest.path.name} names its digest") from None
        return
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DigestMismatchError(f"{path} cannot be read as a statement: {error!r}; copy it again") from error
    digests = {
        manifest.library: manifest.sha256,
        manifest.path.name: hashlib.sha256(manifest.path.read_bytes()).hexdigest(),
    }
    if stated != digests:
        wrong = ", ".join(sorted(name for name in {*stated, *digests} if stated.get(name) != digests.get(name)))
        raise DigestMismatchError(f"{path} does not fit {wrong}: one of them was altered; copy or build them again")
    if _digest(predicate) != manifest.provenance_sha256:
        raise DigestMismatchError(
            f"{path} is not the statement that {manifest.path.name} was written with; copy or build both again"
        )


def _digest(predicate: Any) -> str:
    return hashlib.sha256(json.dumps(predicate, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
