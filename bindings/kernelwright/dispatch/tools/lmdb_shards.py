"""Compare the values of LMDB environments with the digests in their keys; prints one line of JSON per environment.

    python lmdb_shards.py DATA.MDB …

It is a separate program: LMDB maps the file, so a damaged page can kill the process with a signal. It needs only the
lmdb package. Keys are the sha256 of their value followed by a version byte, in the database that Pants calls
``content-versioned``.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any

_CONTENT = b"content-versioned"
_DIGEST_BYTES = 32
_MANIFEST, _STATEMENT = b'"object_sha256"', b'"urn:x-kernelwright:kernel-library:1"'
MAX_TEXT = 1 << 26
"""Size limit, in bytes, of manifests and statements that are read."""


def compare(data: Path) -> dict[str, Any]:
    """``files``: number of values compared; ``damaged``: digests of those that differ; ``error``: damaged pages.

    ``described``: results of :func:`described` for values that are manifests or statements of libraries.
    """
    lmdb = importlib.import_module("lmdb")
    files, damaged, error, entries = 0, [], "", []
    try:
        with (
            lmdb.open(str(data.parent), readonly=True, lock=False, create=False, max_dbs=8) as environment,
            environment.begin(buffers=True) as transaction,
        ):
            content = environment.open_db(_CONTENT, txn=transaction, create=False)
            stated = transaction.stat(content)["entries"]
            for key, value in transaction.cursor(content):
                files += 1
                if hashlib.sha256(value).digest() != bytes(key[:_DIGEST_BYTES]):
                    damaged.append(bytes(key[:_DIGEST_BYTES]).hex())
                elif (entry := described(value)) is not None:
                    entries.append(entry)
            if files != stated:
                error = f"{files} entries instead of {stated}"
    except lmdb.Error as problem:
        error = str(problem)
    return {"data": str(data), "files": files, "damaged": damaged, "error": error, "described": entries}


def described(value: bytes | memoryview) -> dict[str, Any] | None:
    """Kernels listed in a manifest, or the inputs listed in the statement beside it; None for other bytes.

    ``manifest``: its sha256, in both; ``toolchains``, ``kernels`` (identity, name, digest of the objects), ``library``
    and ``sha256`` (its name and digest), or ``made_of``, a digest of all sources and toolchains.
    """
    if bytes(value[:1]) != b"{" or len(value) > MAX_TEXT:
        return None
    data = bytes(value)
    try:
        if _STATEMENT in data:
            statement = json.loads(data)
            (about,) = (entry for entry in statement["subject"] if entry["name"] == "manifest.json")
            made_of = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
            return {"manifest": about["digest"]["sha256"], "made_of": _digest(made_of)}
        if _MANIFEST in data:
            manifest = json.loads(data)
            kernels = [[kernel["identity"], kernel["name"], kernel["object_sha256"]] for kernel in manifest["kernels"]]
            digest = hashlib.sha256(data).hexdigest()
            whole = {"library": manifest.get("library"), "sha256": manifest.get("sha256")}
            return {"manifest": digest, "toolchains": _digest(manifest["toolchains"]), "kernels": kernels, **whole}
    except (ValueError, KeyError, TypeError, RecursionError):
        pass  # a file of another kind that contains these words
    return None


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(compare(Path(name))), flush=True)
