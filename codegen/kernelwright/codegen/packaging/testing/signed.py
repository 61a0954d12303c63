"""Ed25519 keys in files, and a ``dist`` folder as a build leaves it: a wheel and the folder of a library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from kernelwright.codegen.packaging import envelope, provenance
from kernelwright.codegen.packaging.provenance import sha256
from kernelwright.codegen.packaging.verify import verify
from kernelwright.codegen.packaging.wheels import respond_wheel

SEED = bytes(range(32))
WHEEL = "acme-1.0-py3-none-any.whl"


def write_keys(folder: Path, name: str, seed: bytes) -> tuple[Path, Path]:
    """Write a private and a public key in PEM."""
    key = Ed25519PrivateKey.from_private_bytes(seed)
    private, public = folder / f"{name}.pem", folder / f"{name}.pub.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    private.chmod(0o600)
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public


def write_library(folder: Path, materials: list[dict[str, Any]]) -> None:
    """Write the folder of a library: library, manifest and statement."""
    kernels = [{"name": "k", "identity": "1", "spec": {}}]
    predicate = provenance.predicate(
        provenance.LIBRARY_BUILD, {"name": "gemm", "arch": "gfx942", "kernels": kernels}, {}, materials
    )
    manifest = {
        **{"name": "gemm", "arch": "gfx942", "library": "libgemm.so", "sha256": sha256(b"library")},
        **{"kernels": kernels, "provenance_sha256": sha256(provenance.canonical(predicate))},
    }
    text = json.dumps(manifest)
    subjects = {"libgemm.so": sha256(b"library"), "manifest.json": sha256(text.encode())}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "libgemm.so").write_bytes(b"library")
    (folder / "manifest.json").write_text(text)
    (folder / "provenance.json").write_text(provenance.statement_text(subjects, predicate))


def write_dist(folder: Path) -> Path:
    """Write a wheel and a library's folder in ``dist``, and two key pairs beside it; ``folder`` is the current one."""
    write_keys(folder, "ours", SEED)
    write_keys(folder, "theirs", SEED[::-1])
    Path("project.toml").write_text('[project]\nname = "acme"\nversion = "1.0"\n')
    Path("a.py").write_text("x = 1\n")
    respond_wheel({"project": "project.toml", "files": {"acme/a.py": "a.py"}, "output": f"dist/{WHEEL}"})
    write_library(Path("dist/gfx942"), [provenance.file_material("a.h", sha256(b"a.h"))])
    return Path("dist")


def problems(dist: Path, key: str = "ours") -> dict[str, str]:
    """Return what ``verify --key`` finds wrong, by the name of the file or folder."""
    verdicts = verify(dist, (), [envelope.read_public_key(Path(f"{key}.pub.pem"))])
    return {Path(verdict.package).name: "; ".join(verdict.problems) for verdict in verdicts if verdict.problems}
