"""Signed statements: DSSE envelopes (https://github.com/secure-systems-lab/dsse) with Ed25519 keys.

Only this module needs the package ``cryptography`` (``kernelwright[sign]``).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelwright.codegen.violations import SpecError
from kernelwright.files.strict_json import parse_json

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

PAYLOAD_TYPE = "application/vnd.in-toto+json"


def signed(payload: bytes, key: Ed25519PrivateKey) -> bytes:
    """Return the envelope of a statement as JSON text; the same key and payload give the same bytes."""
    signature = key.sign(encoded(PAYLOAD_TYPE, payload))
    envelope = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [{"keyid": key_id(key.public_key()), "sig": base64.b64encode(signature).decode()}],
    }
    return (json.dumps(envelope, indent=1, sort_keys=True) + "\n").encode()


def opened(envelope: bytes, keys: Sequence[Ed25519PublicKey]) -> bytes:
    """Return the payload of an envelope that one of ``keys`` signed, byte for byte. ValueError says why there is none.

    The key ID in an envelope is an unsigned hint, so it is ignored.
    """
    try:
        raw: Any = parse_json(envelope.decode())
        kind, payload = raw["payloadType"], base64.b64decode(raw["payload"], validate=True)
        signatures = [base64.b64decode(entry["sig"], validate=True) for entry in raw["signatures"]]
    except (ValueError, RecursionError, KeyError, TypeError, binascii.Error) as error:
        raise ValueError(f"is no DSSE envelope: {error!r}") from None
    if kind != PAYLOAD_TYPE:
        raise ValueError(f"has payload type {kind!r}; allowed: {PAYLOAD_TYPE}")
    if not signatures:
        raise ValueError("holds no signature")
    text = encoded(kind, payload)
    if not any(_is_signed(key, signature, text) for key in keys for signature in signatures):
        wanted = " or ".join(key_id(key)[:16] for key in keys)
        raise ValueError(f"is not signed by the key {wanted}… (sha256 of the public key)")
    return payload


def encoded(kind: str, payload: bytes) -> bytes:
    """Return the bytes to sign: DSSE's pre-authentication encoding."""
    return b"DSSEv1 %d %s %d %s" % (len(kind.encode()), kind.encode(), len(payload), payload)


def key_id(key: Ed25519PublicKey) -> str:
    """Return the sha256 of the public key in DER (SubjectPublicKeyInfo), 64 hex digits."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def read_private_key(path: Path) -> Ed25519PrivateKey:
    """Read an Ed25519 key in PEM (PKCS #8) without password. SpecError says what else the file is."""
    _needs_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(path)
    try:
        key = load_pem_private_key(data, None)
    except TypeError:
        raise SpecError(f"{path} is encrypted; write it without password: openssl pkey -in {path}") from None
    except Exception as error:  # UnsupportedAlgorithm, ValueError
        raise SpecError(f"{path} is no private key in PEM: {error}; {_MAKE}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise SpecError(f"{path} holds a key of another kind; allowed: Ed25519; {_MAKE}")
    return key


def read_public_key(path: Path) -> Ed25519PublicKey:
    """Read an Ed25519 key in PEM (SubjectPublicKeyInfo). SpecError says what else the file is."""
    _needs_cryptography()
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read(path)
    try:
        key = load_pem_public_key(data)
    except Exception as error:  # UnsupportedAlgorithm, ValueError
        raise SpecError(
            f"{path} is no public key in PEM: {error}; openssl pkey -in PRIVATE.pem -pubout -out PUBLIC.pem writes one"
        ) from None
    if not isinstance(key, Ed25519PublicKey):
        raise SpecError(f"{path} holds a key of another kind; allowed: Ed25519; {_MAKE}")
    return key


_MAKE = "openssl genpkey -algorithm ed25519 -out PRIVATE.pem makes one"


def _is_signed(key: Ed25519PublicKey, signature: bytes, text: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, text)
    except InvalidSignature:
        return False
    return True


def _needs_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError:
        raise SpecError("signatures need the package cryptography; pip install 'kernelwright[sign]'") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}; name a key in PEM") from None
