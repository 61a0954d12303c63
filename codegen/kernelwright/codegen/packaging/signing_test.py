from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from kernelwright.codegen.interface import cli, exit_codes
from kernelwright.codegen.packaging import envelope, provenance
from kernelwright.codegen.packaging.provenance import sha256
from kernelwright.codegen.packaging.signing import envelope_of
from kernelwright.codegen.packaging.testing.signed import SEED, problems, write_dist, write_keys, write_library


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel and the folder of a library in ``dist``, and two pairs of keys beside it."""
    monkeypatch.chdir(tmp_path)
    return write_dist(tmp_path)


def run(*arguments: str) -> int:
    return cli.main(arguments)


def test_what_is_signed_verifies_with_its_key_only(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verify", "dist") == 0
    assert run("verify", "dist", "--key", "ours.pub.pem") == exit_codes.EXIT_MISMATCH == 3
    said = capsys.readouterr().out
    assert "acme-1.0-py3-none-any.whl: 1 problem" in said
    assert "is not signed: acme-1.0-py3-none-any.whl.dsse.json is missing" in said
    assert "is not signed: provenance.dsse.json is missing" in said

    assert run("sign", "--key", "ours.pem", "dist") == 0
    written = capsys.readouterr().out.split()
    assert written == ["dist/acme-1.0-py3-none-any.whl.dsse.json", "dist/gfx942/provenance.dsse.json"]
    before = [Path(path).read_bytes() for path in written]
    assert run("verify", "dist") == 0 and "signed" not in capsys.readouterr().out
    assert run("verify", "dist", "--key", "ours.pub.pem") == 0
    assert capsys.readouterr().out.count(", signed\n") == 2
    assert run("verify", "dist", "--key", "theirs.pub.pem") == 3
    assert "provenance.dsse.json is not signed by the key" in capsys.readouterr().out
    assert run("verify", "dist", "--key", "theirs.pub.pem", "--key", "ours.pub.pem") == 0
    assert run("sign", "--key", "ours.pem", "dist") == 0
    assert [Path(path).read_bytes() for path in written] == before


def test_only_what_is_whole_is_signed(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (dist / "gfx942/libgemm.so").write_bytes(b"Library")
    assert run("sign", "--key", "ours.pem", "dist") == 3
    assert "libgemm.so has sha256" in capsys.readouterr().out and not list(dist.rglob("*.dsse.json"))


def edit(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    raw = json.loads(path.read_bytes())
    change(raw)
    path.write_text(json.dumps(raw))


def _other_payload(raw: dict[str, Any]) -> None:
    raw["payload"] = base64.b64encode(base64.b64decode(raw["payload"]) + b" ").decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_other_payload, "is not signed by the key"),
        (lambda raw: raw.update(signatures=[]), "holds no signature"),
        (lambda raw: raw.update(payloadType="text/plain"), "payload type 'text/plain'; allowed"),
        (lambda raw: raw["signatures"][0].update(sig="!"), "is no DSSE envelope"),
        (lambda raw: raw["signatures"][0].update(sig=base64.b64encode(bytes(64)).decode()), "is not signed by the key"),
        (lambda raw: raw.pop("payload"), "is no DSSE envelope"),
    ],
)
def test_changed_envelopes_are_refused(dist: Path, change: Callable[[dict[str, Any]], None], message: str) -> None:
    run("sign", "--key", "ours.pem", "dist")
    for package in (dist / "acme-1.0-py3-none-any.whl", dist / "gfx942"):
        edit(envelope_of(package), change)
    by_package = problems(dist)
    assert set(by_package) == {"acme-1.0-py3-none-any.whl", "gfx942"}
    assert all(message in text and ".dsse.json" in text for text in by_package.values())


def test_an_envelope_of_endless_depth_is_refused(dist: Path) -> None:
    for package in (dist / "acme-1.0-py3-none-any.whl", dist / "gfx942"):
        envelope_of(package).write_text("[" * 100_000)
    by_package = problems(dist)
    assert len(by_package) == 2 and all("is no DSSE envelope" in text for text in by_package.values())


def test_the_envelope_of_another_package_is_refused(dist: Path) -> None:
    write_library(dist / "gfx950", [provenance.file_material("b.h", sha256(b"b.h"))])
    run("sign", "--key", "ours.pem", "dist")
    assert not problems(dist)
    shutil.copyfile(dist / "gfx942/provenance.dsse.json", dist / "gfx950/provenance.dsse.json")
    assert problems(dist) == {"gfx950": "provenance.dsse.json signs another statement, not that of this package"}


def test_every_byte_of_a_wheel_is_signed(dist: Path) -> None:
    run("sign", "--key", "ours.pem", "dist")
    wheel = dist / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.comment = b"not in the statement of the wheel itself"
    assert run("verify", "dist") == 0
    assert "signs another statement" in problems(dist)[wheel.name]


def test_a_library_that_no_statement_names_is_refused(dist: Path) -> None:
    run("sign", "--key", "ours.pem", "dist")
    (dist / "gfx942/libevil.so").write_bytes(b"evil")
    (dist / "other").mkdir()
    (dist / "other/libevil.so.1").write_bytes(b"evil")
    assert problems(dist) == {name: "is not signed: no statement names it" for name in ("libevil.so", "libevil.so.1")}


def test_envelopes_of_other_tools_are_accepted_for_the_same_bytes(dist: Path) -> None:
    """Several signatures, no key ID; but not another layout of the same statement."""

    def sign(statement: bytes) -> None:
        signatures = [
            {"sig": base64.b64encode(Ed25519PrivateKey.from_private_bytes(seed).sign(text)).decode()}
            for text in [envelope.encoded(envelope.PAYLOAD_TYPE, statement)]
            for seed in (SEED[::-1], SEED)
        ]
        made = {"payload": base64.b64encode(statement).decode(), "payloadType": envelope.PAYLOAD_TYPE}
        (dist / "gfx942/provenance.dsse.json").write_text(json.dumps({**made, "signatures": signatures}))

    statement = (dist / "gfx942/provenance.json").read_bytes()
    sign(statement)
    assert "gfx942" not in problems(dist) and "gfx942" not in problems(dist, "theirs")
    sign(json.dumps(json.loads(statement)).encode())
    assert "signs another statement" in problems(dist)["gfx942"]


def test_the_encoding_is_that_of_the_specification() -> None:
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert envelope.encoded("http://example.com/HelloWorld", b"hello world") == expected


def test_an_empty_list_of_materials_does_not_verify(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_library(dist / "gfx942", [])
    assert run("verify", "dist") == 3
    assert "names no materials" in capsys.readouterr().out
    assert run("sign", "--key", "ours.pem", "dist") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["verify", "dist", "--key", "nowhere.pem"], "nowhere.pem cannot be read"),
        (["verify", "dist", "--key", "ours.pem"], "is no public key in PEM"),
        (["sign", "dist", "--key", "ours.pub.pem"], "is no private key in PEM"),
        (["sign", "dist"], "Missing option '--key'"),
        (["sign", "nowhere", "--key", "ours.pem"], "nowhere is not there"),
    ],
)
def test_wrong_keys_are_bad_input(
    dist: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == exit_codes.EXIT_BAD_INPUT and message in capsys.readouterr().err


def test_a_key_is_kept_apart_from_builds_and_packages(
    dist: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(key: str | Path) -> str:
        assert run("sign", "--key", str(key), "dist") == exit_codes.EXIT_BAD_INPUT
        assert not list(dist.rglob("*.dsse.json"))
        return capsys.readouterr().err

    Path("ours.pem").chmod(0o640)
    assert "ours.pem has mode 640, so other users can read it; chmod 600 ours.pem" in refused("ours.pem")
    Path("ours.pem").chmod(0o600)
    inside, _ = write_keys(dist / "gfx942", "ours", SEED)
    assert "which is what you publish" in refused(inside)
    inside.unlink()
    inside.with_name("ours.pub.pem").unlink()
    workspace = tmp_path / "workspace"
    (workspace / "deep/er").mkdir(parents=True)
    (workspace / "pants.toml").write_text("")
    key, _ = write_keys(workspace / "deep/er", "ours", SEED)
    assert f"lies in the workspace {workspace.resolve()}, whose files builds may read" in refused(key)
    Path("link.pem").symlink_to(key)
    assert "lies in the workspace" in refused("link.pem")
    monkeypatch.setenv("KERNELWRIGHT_SIGNING_KEY", "ours.pem")
    assert run("sign", "dist") == 0 and run("verify", "--key", "ours.pub.pem", "dist") == 0


def test_keys_and_signatures_are_those_of_openssl(dist: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl")
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "new.pem"], check=True, timeout=60)
    subprocess.run(["openssl", "pkey", "-in", "new.pem", "-pubout", "-out", "new.pub.pem"], check=True, timeout=60)
    assert run("sign", "--key", "new.pem", "dist") == 0
    assert run("verify", "--key", "new.pub.pem", "dist") == 0
    raw = json.loads((dist / "gfx942/provenance.dsse.json").read_bytes())
    Path("text").write_bytes(envelope.encoded(raw["payloadType"], base64.b64decode(raw["payload"])))
    Path("sig").write_bytes(base64.b64decode(raw["signatures"][0]["sig"]))
    verify_it = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", "new.pub.pem", "-rawin", "-in", "text"]
    subprocess.run([*verify_it, "-sigfile", "sig"], check=True, timeout=60)
    rsa = ["openssl", "genpkey", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "rsa.pem"]
    subprocess.run(rsa, check=True, timeout=60, capture_output=True)
    assert run("sign", "--key", "rsa.pem", "dist") == exit_codes.EXIT_BAD_INPUT


def test_without_cryptography_the_extra_is_named(
    dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert run("verify", "dist") == 0
    assert run("verify", "dist", "--key", "ours.pub.pem") == exit_codes.EXIT_BAD_INPUT
    assert "pip install 'kernelwright[sign]'" in capsys.readouterr().err


def test_public_keys_have_an_id(dist: Path) -> None:
    key = envelope.read_public_key(Path("ours.pub.pem"))
    assert isinstance(key, Ed25519PublicKey)
    raw = json.loads(envelope.signed(b"{}", envelope.read_private_key(Path("ours.pem"))))
    assert raw["signatures"][0]["keyid"] == envelope.key_id(key) and len(envelope.key_id(key)) == 64
