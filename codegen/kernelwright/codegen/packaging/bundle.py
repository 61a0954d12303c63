"""The manifest beside a library: its contents, how it was made, what its kernels need; and its provenance."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernelwright.codegen.inputs import checked, read_json
from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.packaging import provenance
from kernelwright.codegen.packaging.requests import BundleRequest
from kernelwright.codegen.resources.limits import check_limits
from kernelwright.codegen.resources.readers import report_reader
from kernelwright.codegen.violations import SpecError
from kernelwright.files.occupancy import occupancy

SCHEMA_VERSION = 1
_KEYS = ("name", "arch", "backend", "abi_version", "device", "library", "toolchains", "kernels")


class BrokenKernelError(RuntimeError):
    """A kernel that compiled, but whose report shows that it cannot work or cannot be read."""


def respond_bundle(raw: object) -> str:
    """The response to a request (see :mod:`kernelwright.codegen.interface.protocol`); SpecError if it is wrong."""
    return json.dumps(bundled(raw))


def bundled(raw: object) -> dict[str, str]:
    """Return the files of that response by name."""
    allowed = {"stage", "library", "root", "sha256", "materials"}
    if not isinstance(raw, Mapping) or not {"library"} <= set(raw) <= allowed:
        raise SpecError("a bundle request has the keys library and, optionally, stage, root, sha256 and materials")
    if raw.get("stage", "bundle") != "bundle":
        raise SpecError(f"request key 'stage' is {raw['stage']!r}; allowed: bundle")
    library = raw["library"]
    if not isinstance(library, Mapping):
        raise SpecError("request key 'library' must be an entry of a plan's libraries")
    if missing := [key for key in _KEYS if key not in library]:
        raise SpecError(f"library description lacks {', '.join(missing)}")
    checked(BundleRequest, raw, "the bundle request")
    materials = provenance.materials_of(raw["materials"]) if "materials" in raw else None
    root = Path(raw.get("root", "."))
    made = manifest(library, lambda path: root / path, raw.get("sha256", {}))
    return bundle_files(made, materials)


def bundle_files(made: dict[str, Any], materials: Sequence[Mapping[str, Any]] | None) -> dict[str, str]:
    """Return ``manifest.json`` and, if the library's materials are known, ``provenance.json``: name → text.

    The statement holds the manifest's digest and the manifest the predicate's, so neither can be changed alone.
    """
    if materials is None:
        return {"manifest.json": _text(made)}
    predicate = provenance.predicate(
        provenance.LIBRARY_BUILD,
        {
            "name": made["name"],
            "arch": made["arch"],
            "kernels": [{key: kernel[key] for key in provenance.KERNEL_KEYS} for kernel in made["kernels"]],
        },
        {"toolchains": made["toolchains"], "abi_version": made["abi_version"]},
        [*materials, *provenance.generator_materials()],
    )
    text = _text({**made, "provenance_sha256": provenance.sha256(provenance.canonical(predicate))})
    subjects = {made["library"]: made["sha256"], "manifest.json": provenance.sha256(text.encode())}
    return {"manifest.json": text, provenance.FILE: provenance.statement_text(subjects, predicate)}


def _text(made: Mapping[str, Any]) -> str:
    return json.dumps(made, indent=1, sort_keys=True) + "\n"


def manifest(
    library: Mapping[str, Any], find: Callable[[str], Path], sha256: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the manifest of one entry of ``libraries`` (see :mod:`kernelwright.codegen.interface.protocol`).

    ``find`` returns the path of a file of the plan; a file whose digest is in ``sha256`` need not exist.
    ``object_sha256`` is the SHA-256 of the kernel's object file: the host object (ELF, ``.o``) that the library links
    for this kernel, not the GPU code inside it, which the library holds only as a part. A kernel with several objects
    (AMD: descriptor, then embedded code object) has the SHA-256 of their digests instead, 64 lower-case hex digits
    each, in that order, without separators. It tells whether two builds made the same kernel; ``sha256`` is what
    loading checks. Raises SpecError for a key or file that is missing, BrokenKernelError for a report that shows a
    useless kernel, and LimitError for kernels beyond their limits.
    """
    missing = [key for key in _KEYS if key not in library]
    if missing:
        raise SpecError(f"library description lacks {', '.join(missing)}")

    def digest(path: str) -> str:
        return sha256.get(path) or hashlib.sha256(_read(find(path))).hexdigest()

    kernels = []
    for kernel in library["kernels"]:
        digests = [digest(path) for path in kernel["objects"]]
        resources = _resources(library, kernel, find) if kernel["report"] else None
        kernels.append(
            {
                **{key: kernel[key] for key in ("name", "identity", "arch", "spec", "features")},
                "object_sha256": digests[0] if len(digests) == 1 else _combined(digests),
                "resources": resources,
            }
        )
    limits = (kernel.get("limits", {}) for kernel in library["kernels"])
    check_limits([(made["name"], stated, made["resources"]) for made, stated in zip(kernels, limits, strict=True)])
    return {
        "schema_version": SCHEMA_VERSION,
        **{key: library[key] for key in ("name", "arch", "device", "backend", "abi_version")},
        "library": library["library"].rpartition("/")[2],
        "sha256": digest(library["library"]),
        "toolchains": library["toolchains"],
        "kernels": kernels,
        **({"models": library["models"]} if library.get("models") else {}),
    }


def _resources(
    library: Mapping[str, Any], kernel: Mapping[str, Any], find: Callable[[str], Path]
) -> dict[str, Any] | None:
    """Return the resources that a kernel's report shows, with the counts that an action of the plan made."""
    reader, unit, expects = report_reader(library["backend"]), library.get("compute_unit"), _expectation(kernel)
    try:
        report = reader(_read(find(kernel["report"])), expects)
    except SpecError:
        raise
    except ValueError as error:
        raise BrokenKernelError(f"{kernel['name']}: {error}") from None
    if report is None:
        return None
    if unit:
        report |= occupancy({"wave_size": library["wave_size"], **report}, unit)
    return {**report, "counts": _counts(find(kernel["counts"]))} if kernel.get("counts") else report


def _counts(path: Path) -> dict[str, Any]:
    """Read counts; SpecError for a file that is missing or holds no JSON object."""
    counts = read_json(path)
    if not isinstance(counts, dict):
        raise SpecError(f"{path} holds no counts of a kernel; build the library again")
    return counts


def _expectation(kernel: Mapping[str, Any]) -> Expectation:
    try:
        raw = kernel["expects"]
        return Expectation(raw["device_kernels"], raw["matrix_instructions"], tuple(raw["helpers"]))
    except (KeyError, TypeError) as error:
        raise SpecError(
            f"kernel {kernel['name']} of the library description has no usable 'expects': {error}"
        ) from None


def _combined(digests: Sequence[str]) -> str:
    return hashlib.sha256("".join(digests).encode()).hexdigest()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        raise SpecError(f"{path} is not there; build the library first") from None
