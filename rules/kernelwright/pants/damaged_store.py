"""Defences against a local Pants store that returns other bytes than were stored.

Pants does not compare what it reads from its local store with the requested digest. Contents are compared at the three
places from which a wrong artefact could come out: the inputs of a process of ours, files that the plugin itself reads,
and a finished library before it is packaged. Pants' own databases and BUILD files are not checked again; where Pants
reports damage in its own words, advice is added to its message.
"""

from __future__ import annotations

import hashlib
import logging
import re
from typing import Mapping

ADVICE = (
    "Stop Pants, check the disk, remove the folder of [GLOBAL].local_store_dir (~/.cache/pants/lmdb_store unless set) "
    "and build again."
)


class DamagedStore(Exception):
    """Pants' local store returned other bytes than were stored."""

    exit_code = 3  # verification failed, see docs/exit_codes.md

    def __init__(self, what: str) -> None:
        super().__init__(f"the local store is damaged: {what}\n{ADVICE}")


def check_contents(contents: Mapping[str, bytes], fingerprints: Mapping[str, str]) -> None:
    """Raise DamagedStore for the first file whose sha256 is not its fingerprint."""
    for path, content in contents.items():
        if hashlib.sha256(content).hexdigest() != fingerprints[path]:
            raise DamagedStore(path)


CHECKSUMS = "__inputs.sha256"
"""The file that lists the checksums of a process's inputs, for ``sha256sum --check``."""

_DAMAGED = 87

COMPARE_CHECKSUMS = f"""\
(
  PATH=/usr/bin:/bin
  [ ! -s {CHECKSUMS} ] || ! command -v sha256sum >/dev/null || sha256sum --check --quiet {CHECKSUMS} >&2
) || exit {_DAMAGED}
"""
"""The shell command with which a process compares its inputs."""


def checksums(fingerprints: Mapping[str, str]) -> str:
    """Return the text of :data:`CHECKSUMS` for fingerprints by path."""
    return "".join(f"{fingerprint}  {path}\n" for path, fingerprint in sorted(fingerprints.items()))


def check_inputs(exit_code: int, stderr: bytes, what: str) -> None:
    """Raise DamagedStore if a process ended because its inputs differ from :data:`CHECKSUMS`."""
    if exit_code == _DAMAGED:
        raise DamagedStore(f"{what}: {stderr.decode(errors='replace').strip()}")


# Pants' own messages for it, which do not name the store: from the database, from messages in it, from text files in
# it.
_SURE = re.compile(r"\bMDB_[A-Z_]+|invalid wire type|failed to decode Protobuf message|invalid tag value")
_PERHAPS = re.compile(r"UnicodeDecodeError|source code string cannot contain null bytes|non-printable character")


class Adviser(logging.Filter):
    """Adds advice to Pants' own error messages that indicate a damaged store."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if "local store is damaged" in text:
            return True
        if _SURE.search(text):
            advice = f"the local store is damaged. {ADVICE}"
        elif _PERHAPS.search(text):
            advice = f"Unless a BUILD file is not UTF-8 text, the local store is damaged. {ADVICE}"
        else:
            return True
        record.msg, record.args = f"{text.rstrip()}\n\n{advice}", ()
        return True


def advise() -> None:
    """Add advice to the loggers that report why a run failed."""
    for name in ("pants.bin.local_pants_runner", "pants.bin.daemon_pants_runner"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, Adviser) for known in logger.filters):
            logger.addFilter(Adviser())
