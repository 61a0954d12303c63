"""Compares the values of LMDB environments with the digests that are their keys; one line of JSON for each environment.

    python lmdb_shards.py DATA.MDB …

A program of its own: LMDB maps the file, so a damaged page can end the process with a signal. It needs the lmdb package
and nothing else. Keys are the sha256 of their value with a version byte behind it, in the database that Pants calls
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


def compare(data: Path) -> dict[str, Any]:
    """``files``: values that were compared; ``damaged``: digests of those that differ; ``error``: pages that do."""
    lmdb = importlib.import_module("lmdb")
    files, damaged, error = 0, [], ""
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
            if files != stated:
                error = f"{files} entries instead of {stated}"
    except lmdb.Error as problem:
        error = str(problem)
    return {"data": str(data), "files": files, "damaged": damaged, "error": error}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(json.dumps(compare(Path(name))), flush=True)
