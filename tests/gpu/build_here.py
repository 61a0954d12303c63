"""Builds sm_90a libraries by ``Registry.build`` with this machine's nvcc and gcc, into the folders the tests look in.

``python3 tests/gpu/build_here.py --cutlass FOLDER`` builds tests/gpu/kernels.json into .gpu/sm_90a; with ``--members
N`` a seeded sample of N members of the preselected sets into .gpu/members; with ``--specs FILE`` the kernels of another
file into .gpu/NAME, its name without suffix; with ``--flashinfer OTHER`` tests/gpu/attention_kernels.json into
.gpu/attention. Kernels that do not compile are left out and listed. FOLDER is where the nvidia-cutlass wheel is
unpacked or installed, OTHER the same of flashinfer-python. ``--clang WHEELS`` compiles kernels as those that ship are,
by the clang of the pinned ziglang and clang-tidy wheels, unpacked in WHEELS, and the machine's ptxas. Needs no GPU.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.arch import load
from kernelwright.codegen.trees import all_trees
from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.jit import BuildFailedError, Registry

ROOT = Path(__file__).resolve().parents[2]
ARCH = "sm_90a"
DEVICE = Device("cuda:0", arch=ARCH)


def toolchains(nvcc: str | None, gcc: str) -> dict[str, dict[str, str]]:
    """The machine's compilers, told apart by their bytes and versions; kernels by the pinned clang without ``nvcc``."""
    compilers = {"host": {"choice": "system", "path": gcc, "fingerprint": _fingerprint(gcc)}}
    if nvcc is not None:
        compilers["cuda"] = {"choice": "system-nvcc", "path": nvcc, "fingerprint": _fingerprint(nvcc, gcc)}
    return compilers


def _fingerprint(*tools: str) -> str:
    digest = hashlib.sha256()
    for tool in tools:
        digest.update(Path(tool).resolve().read_bytes())
        digest.update(subprocess.run([tool, "--version"], capture_output=True, check=True).stdout)
    return digest.hexdigest()[:16]


# Of a CUDA installation, what the wheels hold: by the wheels' path, the installation's.
_SHOWN = {"include": "include", "lib/libcudart_static.a": "lib64/libcudart_static.a"}
_SHOWN_TO_CLANG = {"bin/ptxas": "bin/ptxas", "bin/fatbinary": "bin/fatbinary", "nvvm/libdevice": "nvvm/libdevice"}


def trees(cutlass: Path, cuda: Path, made: Path, clang: Path | None = None) -> dict[str, Path]:
    """Folders of headers, and of the pinned clang if the wheels ziglang and clang-tidy are unpacked in ``clang``."""
    shown = made / "cuda" / "nvidia" / "cu13"
    for link, target in (_SHOWN | (_SHOWN_TO_CLANG if clang else {})).items():
        (shown / link).parent.mkdir(parents=True, exist_ok=True)
        if not (shown / link).is_symlink():
            (shown / link).symlink_to(cuda / target)
    sources = ROOT / "dispatcher_cpp"
    own = {name: sources for name, tree in all_trees().items() if tree.own}
    return {"cutlass": cutlass, "cuda": made / "cuda", **({"zig": clang, "clang": clang} if clang else {}), **own}


def sample(count: int, seed: int = 0) -> list[dict[str, Any]]:
    """One random member of up to ``count`` random sets ``<dtype>_<layout>_<purpose>``, none twice."""
    import random

    from kernelwright.codegen.operations.gemm.kernel_sets import expand_kernel_set, kernel_set_names
    from kernelwright.codegen.selecting.expand import EmptyExpansionError

    random_ = random.Random(seed)
    names = [name for name in kernel_set_names() if not name.endswith(("_all", "_essential"))]
    random_.shuffle(names)
    specs: dict[str, dict[str, Any]] = {}
    for name in names:
        try:
            kernel = random_.choice(expand_kernel_set(name, load(ARCH)).kernels)
        except EmptyExpansionError:
            continue
        if len(specs) < count:
            specs.setdefault(kernel.identity, json.loads(kernel.spec.model_dump_json()))
    return list(specs.values())


def build(
    specs: list[dict[str, Any]], tools: Mapping[str, Any], roots: Mapping[str, Path], jobs: int, name: str = "gemm"
) -> KernelLibrary:
    """The library of the specs; BuildFailedError with everything that did not compile."""
    registry = Registry(DEVICE, name=name, cache=ROOT / ".gpu" / "cache", toolchains=tools, trees=roots)
    for spec in specs:
        registry.add(spec)
    return registry.build(jobs, memory_mb=jobs * 3300, progress=False)


def build_what_compiles(specs: list[dict[str, Any]], **options: Any) -> tuple[KernelLibrary, dict[str, str]]:
    """The library of those that compile, and what the compiler said of the others by kernel."""
    try:
        return build(specs, **options), {}
    except BuildFailedError as error:
        failures = error.failures
    registry = Registry(DEVICE, name="gemm", cache=ROOT / ".gpu" / "cache")
    named = {registry.add(spec).name: spec for spec in specs}
    lost = {name: text for what, text in failures.items() for name in named if name in what.split()}
    return build([spec for name, spec in named.items() if name not in lost], **options), lost


def main() -> int:
    """Build; the exit status is that of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cutlass", type=Path, required=True)
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"))
    parser.add_argument("--gcc", default="/usr/bin/gcc")
    parser.add_argument("--members", type=int, help="a sample of so many members instead")
    parser.add_argument("--specs", type=Path, help="the kernels of this JSON file instead")
    parser.add_argument("--flashinfer", type=Path, help="attention instead; where FlashInfer is")
    parser.add_argument("--clang", type=Path, help="where ziglang and clang-tidy are: their clang instead of nvcc")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    start = time.monotonic()
    tools = toolchains(None if options.clang else str(options.cuda / "bin" / "nvcc"), options.gcc)
    clang = options.clang.resolve() if options.clang else None
    roots = trees(options.cutlass.resolve(), options.cuda.resolve(), ROOT / ".gpu" / "trees", clang)
    more: dict[str, Any] = {"tools": tools, "roots": roots, "jobs": options.jobs}
    name, folder = ARCH, Path(__file__).parent
    if options.members is not None:
        specs, name = sample(options.members), "members"
    elif options.specs is not None:
        specs, name = json.loads(options.specs.read_text()), options.specs.stem
    elif options.flashinfer is not None:
        specs, name = json.loads((folder / "attention_kernels.json").read_text()), "attention"
        roots["flashinfer"], more["name"] = options.flashinfer.resolve(), "attention"
    else:
        specs = json.loads((folder / "kernels.json").read_text())
    library, failures = build_what_compiles(specs, **more)
    folder = ROOT / ".gpu" / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "failures.json").write_text(json.dumps(failures, indent=1) + "\n")
    for file in library.manifest.path.parent.iterdir():
        shutil.copy(file, folder)
    print(f"{len(library.kernels)} kernels in {time.monotonic() - start:.0f} s: {folder}")
    for name, text in failures.items():
        print(f"{name} does not compile:\n{text}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
