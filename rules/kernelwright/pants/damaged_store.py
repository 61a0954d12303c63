"""What to say when Pants' local store does not give back what was put there."""

from __future__ import annotations

import logging
import re

ADVICE = (
    "Stop Pants, check the disk, remove the folder of [GLOBAL].local_store_dir (~/.cache/pants/lmdb_store unless set) "
    "and build again."
)

# Pants' own words for it, which do not name the store: of the database, of messages in it, of text files in it.
_SURE = re.compile(r"\bMDB_[A-Z_]+|invalid wire type|failed to decode Protobuf message|invalid tag value")
_PERHAPS = re.compile(r"UnicodeDecodeError|source code string cannot contain null bytes|non-printable character")


class DamagedStore(Exception):
    """Pants' local store does not give back what was put there."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the local store is damaged: {what}\n{ADVICE}")


class Adviser(logging.Filter):
    """Adds advice to errors in Pants' own words that mean a damaged store."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if "local store is damaged" in text:
            return True
        if _SURE.search(text):
            advice = f"the local store is damaged. {ADVICE}"
        elif _PERHAPS.search(text):
            advice = f"Unless a BUILD file is no UTF-8 text, the local store is damaged. {ADVICE}"
        else:
            return True
        record.msg, record.args = f"{text.rstrip()}\n\n{advice}", ()
        return True


def advise() -> None:
    """Let the loggers that report why a run failed give advice."""
    for name in ("pants.bin.local_pants_runner", "pants.bin.daemon_pants_runner"):
        logger = logging.getLogger(name)
        if not any(isinstance(known, Adviser) for known in logger.filters):
            logger.addFilter(Adviser())
