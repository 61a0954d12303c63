"""``verify --key`` of packages that somebody changed after they were signed: exit code 3, whatever the change."""

from __future__ import annotations

import base64
import json
import os
import random
import shutil
import signal
import socket
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.interface import cli
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT, EXIT_MISMATCH
from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.contents import MAX_TEXT, contents
from kernelwright.codegen.packaging.provenance import sha256
from kernelwright.codegen.packaging.testing.signed import WHEEL, problems, write_dist, write_library
from kernelwright.codegen.packaging.verify import verify

LIMIT_S = 30
Change = Callable[[Path], object]


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A signed ``dist``, and an end to whatever waits for ever."""
    monkeypatch.chdir(tmp_path)
    made = write_dist(tmp_path)
    assert cli.main(["sign", "--key", "ours.pem", "dist"]) == 0

    def late(*_: object) -> None:
        raise AssertionError(f"not done in {LIMIT_S} seconds")  # no OSError, which a reader of files may handle

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(LIMIT_S)
    yield made
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def verified(*arguments: str) -> int:
    return cli.main(["verify", "--key", "ours.pub.pem", *arguments])


def by_link(path: Path) -> None:
    """Leave the same contents, behind a link."""
    aside = Path("aside")
    path.rename(aside)
    path.symlink_to(aside.resolve())


def by_unsigned_link(path: Path) -> None:
    shutil.rmtree(path)
    write_library(Path("evil"), [provenance.file_material("a.h", sha256(b"evil"))])
    path.symlink_to(Path("evil").resolve())


def by_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def by_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def by_twice(path: Path) -> None:
    """Keys twice: a reader that takes the last one of each sees what was there before."""
    text = path.read_text()
    others = ", ".join(f'"{key}": "evil"' for key in json.loads(text))
    path.write_text(text.replace("{", f"{{{others}, ", 1))
    assert json.loads(path.read_text()) == json.loads(text)


def by_space(path: Path) -> None:
    path.write_text(path.read_text() + " ")


def by_sparse(path: Path) -> None:
    with path.open("r+b") as stream:
        stream.truncate(MAX_TEXT + 1)


def append(path: Path) -> None:
    with path.open("ab") as stream:
        stream.write(b"\0")


def stray(name: str) -> Change:
    def add(dist: Path) -> None:
        (dist / name).parent.mkdir(exist_ok=True)
        (dist / name).write_bytes(b"evil")

    return add


def at(name: str, change: Change) -> Change:
    return lambda dist: change(dist / name)


def other_statement(dist: Path) -> None:
    """Statement and signature of another library of the same key."""
    write_library(dist / "gfx950", [provenance.file_material("b.h", sha256(b"b.h"))])
    (dist / "gfx950/libgemm.so").write_bytes(b"library")
    assert cli.main(["sign", "--key", "ours.pem", "dist"]) == 0
    for name in ("provenance.json", "provenance.dsse.json"):
        shutil.copyfile(dist / "gfx950" / name, dist / "gfx942" / name)


def older(dist: Path) -> None:
    """A signed statement beside a library that was built later."""
    (dist / "gfx942/libgemm.so").write_bytes(b"Library")


def renamed(dist: Path) -> None:
    for ending in ("", ".dsse.json"):
        (dist / f"{WHEEL}{ending}").rename(dist / f"acme-2.0-py3-none-any.whl{ending}")


def envelope_field(key: str, value: Any) -> Change:
    def change(dist: Path) -> None:
        path = dist / "gfx942/provenance.dsse.json"
        path.write_text(json.dumps({**json.loads(path.read_bytes()), key: value}))

    return change


LIBRARY, STATEMENT, ENVELOPE = "gfx942/libgemm.so", "gfx942/provenance.json", "gfx942/provenance.dsse.json"
ATTACKS: dict[str, tuple[Change, str]] = {
    "folder_unsigned_link": (at("gfx942", by_unsigned_link), "gfx942: 1 problem\n  is a link"),
    **{
        f"link_{Path(name).name}": (at(name, by_link), "is a link")
        for name in ("gfx942", LIBRARY, "gfx942/manifest.json", STATEMENT, ENVELOPE, WHEEL, f"{WHEEL}.dsse.json")
    },
    "link_to_nothing": (lambda dist: (dist / "libx.so").symlink_to("nowhere"), "libx.so: 1 problem\n  is a link"),
    "link_to_itself": (lambda dist: (dist / "loop").symlink_to("loop"), "loop: 1 problem\n  is a link"),
    "link_to_parent": (lambda dist: (dist / "gfx942/up").symlink_to(".."), "up: 1 problem\n  is a link"),
    **{
        f"stray_{name}": (stray(name), "is not signed: no statement names it")
        for name in (
            *("LIBX.SO", "libx.so1", "evil.py", ".so", "evil.WHL", "gfx942/LIBGEMM.SO", "gfx942/libgemm.so.1"),
            *("gfx942/evil.py", "gfx942/MANIFEST.JSON", "gfx942/deep/libgemm.so", "new/libgemm.so", "evil.whl/x.py"),
            *("gfx942/libge\u0301mm.so", "gfx942/libgemm.so ", "gfx942/\u202eos.mmegbil", "new/provenance.dsse.json"),
        )
    },
    **{
        f"pipe_{Path(name).name}": (at(name, by_pipe), "is a pipe, socket or device")
        for name in ("x", LIBRARY, "gfx942/manifest.json", STATEMENT, ENVELOPE, WHEEL, f"{WHEEL}.dsse.json")
    },
    "socket": (at("gfx942/s", by_socket), "is a pipe, socket or device"),
    **{
        f"missing_{Path(name).name}": (at(name, Path.unlink), "missing")
        for name in (LIBRARY, "gfx942/manifest.json", ENVELOPE, WHEEL, f"{WHEEL}.dsse.json")
    },
    "missing_statement": (
        at(STATEMENT, Path.unlink),
        "provenance.json cannot be compared with provenance.dsse.json: No such file",
    ),
    **{f"folder_{Path(name).name}": (at(name, by_folder), "problem") for name in (LIBRARY, STATEMENT, ENVELOPE, WHEEL)},
    "twice_statement": (at(STATEMENT, by_twice), "signs another statement"),
    "twice_envelope": (at(ENVELOPE, by_twice), "is no DSSE envelope"),
    "space_in_statement": (at(STATEMENT, by_space), "signs another statement"),
    "data_behind_envelope": (at(ENVELOPE, append), "is no DSSE envelope"),
    "data_behind_wheel": (at(WHEEL, append), "signs another statement"),
    "data_behind_library": (at(LIBRARY, append), "libgemm.so has sha256"),
    "large_statement": (at(STATEMENT, by_sparse), f"has more than {MAX_TEXT} bytes"),
    "large_envelope": (at(ENVELOPE, by_sparse), f"has more than {MAX_TEXT} bytes"),
    "other_statement": (other_statement, "manifest.json has sha256"),
    "older_statement": (older, "libgemm.so has sha256"),
    "renamed_wheel": (renamed, "signs another statement"),
    "no_signature": (envelope_field("signatures", []), "holds no signature"),
    "signatures_of_no_list": (envelope_field("signatures", 3), "is no DSSE envelope"),
    "payload_of_another": (envelope_field("payload", base64.b64encode(b"{}").decode()), "is not signed by the key"),
    "payload_not_base64": (envelope_field("payload", "e30=\n"), "is no DSSE envelope"),
}


@pytest.mark.thorough(keep=20)
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_changed_after_signing_ends_with_exit_code_3(
    dist: Path, attack: str, capsys: pytest.CaptureFixture[str]
) -> None:
    change, words = ATTACKS[attack]
    assert verified("dist") == 0
    capsys.readouterr()
    change(dist)
    assert verified("dist") == EXIT_MISMATCH
    assert words in capsys.readouterr().out


def test_hard_links_and_a_link_to_the_whole_are_fine(dist: Path) -> None:
    (dist / LIBRARY).rename("aside.so")
    os.link("aside.so", dist / LIBRARY)
    Path("link").symlink_to(dist)
    assert verified("dist") == verified("link") == verified(str(dist / LIBRARY)) == verified(str(dist / WHEEL)) == 0
    stray("gfx942/evil.py")(dist)
    assert verified(str(dist / LIBRARY)) == verified("dist/gfx942") == EXIT_MISMATCH


def test_what_holds_nothing_is_bad_input(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty/deep").mkdir(parents=True)
    os.mkfifo("pipe")
    for name in ("empty", "nowhere", "project.toml"):
        assert verified(name) == EXIT_BAD_INPUT and name in capsys.readouterr().err
    assert verified("pipe") == EXIT_MISMATCH


def test_no_name_pretends_to_be_a_verdict(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("x\ndist/y: ok, 2 files, signed", "\x1b[2Kz", os.fsdecode(b"\xff.so")):
        stray(name)(dist)
    assert verified("dist") == EXIT_MISMATCH
    said = capsys.readouterr().out
    assert "\ndist/y" not in said and "\x1b" not in said and r"\udcff.so: 1 problem" in said


def test_a_folder_that_cannot_be_read_is_not_passed_over(dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def refuse(path: Path) -> Any:
        if Path(path).name == "gfx942":
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert problems(dist) == {"gfx942": "cannot be read: Permission denied"}
    assert [verdict.problems for verdict in verify(dist)] == [(), ("cannot be read: Permission denied",)]


def test_without_a_key_links_are_refused_where_packages_are(dist: Path) -> None:
    by_unsigned_link(dist / "gfx942")
    (dist / "env").symlink_to("/")
    stray("notes.txt")(dist)
    wrong = [verdict for verdict in verify(dist) if verdict.problems]
    assert [verdict.package for verdict in wrong] == ["dist/gfx942"] and wrong[0].problems[0].startswith("is a link")


@pytest.mark.thorough(instead="test_what_is_changed_after_signing_ends_with_exit_code_3")
def test_every_changed_byte_is_found(dist: Path) -> None:
    """All bytes of an envelope but layout and key ID, which no signature covers and nobody looks at."""
    draw = random.Random(7)
    for file in contents(dist).files:
        whole = file.read_bytes()
        for _ in range(60):
            data = bytearray(whole)
            place = draw.randrange(len(data))
            data[place] ^= 1 << draw.randrange(8)
            file.write_bytes(data)
            reported = problems(dist)
            if file.name.endswith(".dsse.json") and not reported:
                before, after = json.loads(whole), json.loads(data)
                assert before["payload"] == after["payload"] and before["payloadType"] == after["payloadType"]
            else:
                assert reported, (file, place)
        file.write_bytes(whole)
    assert not problems(dist)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_wheels_have_a_verdict(dist: Path, seed: int) -> None:
    """Without a key nothing is signed, and everything is opened: no damage is more than a problem."""
    draw, wheel = random.Random(seed), dist / WHEEL
    whole = wheel.read_bytes()
    ends = [place for place in range(len(whole)) if whole[place : place + 2] == b"PK"]
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 4)):  # mostly in the headers of entries and the list at the end
            data[min(draw.choice(ends) + draw.randrange(46), len(data) - 1)] = draw.randrange(256)
        wheel.write_bytes(data[: draw.choice((len(data), draw.randrange(len(data))))])
        assert len(verify(wheel)) == 1


def test_a_wheel_that_unpacks_to_too_much_is_not_read(dist: Path) -> None:
    archive = zipfile.ZipFile(dist / WHEEL, "a", zipfile.ZIP_DEFLATED)
    with archive, archive.open("acme/zeros", "w", force_zip64=True) as stream:
        for _ in range(65):
            stream.write(bytes(1 << 24))
    (verdict,) = verify(dist / WHEEL)
    assert "allowed: 1073741824" in verdict.problems[0]
    assert "signs another statement" in problems(dist)[WHEEL]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw["subject"].append(raw["subject"][0]), "names a subject twice"),
        (lambda raw: raw["subject"].append({"name": None, "digest": {"sha256": "0"}}), "is no text"),
        (lambda raw: raw.update(subject=3), "lacks builder, names or digests"),
        (lambda raw: raw.update(predicate=[]), "lacks builder, names or digests"),
        (lambda raw: raw["predicate"].pop("buildDefinition"), "lacks resolvedDependencies"),
    ],
)
def test_statements_of_another_form_are_refused(dist: Path, change: Callable[[Any], None], words: str) -> None:
    raw = json.loads((dist / STATEMENT).read_bytes())
    change(raw)
    (dist / STATEMENT).write_text(json.dumps(raw))
    (verdict,) = verify(dist / "gfx942")
    assert words in verdict.problems[0]


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, '{"a": 1, "a": 1}', "\xff", '{"kernels": 3}'])
def test_manifests_of_another_form_are_refused(dist: Path, text: str) -> None:
    (dist / "gfx942/manifest.json").write_text(text, "latin-1")
    (verdict,) = verify(dist / "gfx942")
    assert any(problem.startswith("manifest.json ") for problem in verdict.problems)
