"""Every kind of file that a user gives to ``kernelwright``: a good one, and the command line that reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostile_files.good_files import (
    AMD,
    ATTENTION,
    CONFIG,
    CONVOLUTIONS,
    DIGEST,
    GEMM,
    GRADIENTS,
    LIBRARY,
    MANIFEST,
    SMALL,
    TRACE,
    arch_file,
    model,
    signed,
)


@dataclass(frozen=True)
class Target:
    """``arguments`` are those of the command line ``program``; ``FILE`` stands for the mutated file.

    ``beside`` are further files. In all texts ``DIR`` stands for the folder that they are in, and ``HEADERS`` for the
    root of this project's headers. ``written`` completes a mutated value.
    """

    good: Any
    arguments: tuple[str, ...]
    program: str = "kernelwright"
    name: str = "file.json"
    beside: Mapping[str, Any] = field(default_factory=dict)
    written: Callable[[Any], Any] | None = None


def _requested(request: Any, **beside: Any) -> dict[str, Any]:
    return {"request.json": request, **beside}


_RESPOND = ("plan", "--request", "DIR/request.json", "--response", "DIR/response.json")
_PLAN = {"stage": "plan", "name": "lib"}

TARGETS: Mapping[str, Target] = {
    "model": Target(
        model(),
        _RESPOND,
        beside=_requested({"stage": "heuristic", "model": "FILE", "output": "libpick.so"}),
        written=signed,
    ),
    "model of a library": Target(
        model(),
        _RESPOND,
        beside=_requested({**_PLAN, "kernels": [{"arch": "x86_64_v3", "spec": GEMM}], "models": ["FILE"]}),
        written=signed,
    ),
    "spec": Target(GEMM, ("render", "--arch", "x86_64_v3", "--spec", "FILE", "--out", "DIR/out")),
    "list of specs": Target(
        [AMD, {**AMD, "layout": "rrr"}], ("render", "--arch", "gfx942", "--spec", "FILE", "--out", "DIR/out")
    ),
    "configuration": Target(CONFIG, ("kernels", "--arch", "gfx942", "--config", "FILE", "--count")),
    "configuration of generate": Target(
        CONFIG, ("generate", "gemm", "--gpu-target", "gfx942", "--config", "FILE", "--output-dir", "DIR/out")
    ),
    "trace": Target(
        TRACE,
        ("kernels", "--arch", "x86_64_v3", "--problems", "FILE", "--config", "DIR/config.json", "--explain"),
        beside={"config.json": SMALL},
    ),
    "trace of convolutions": Target(
        CONVOLUTIONS,
        ("kernels", "--arch", "x86_64_v3", "--problems", "FILE", "--set", "convolution:essential", "--explain"),
    ),
    "trace of attention": Target(
        ATTENTION,
        ("kernels", "--arch", "x86_64_v3", "--problems", "FILE", "--set", "attention:essential", "--explain"),
    ),
    "trace of gradients": Target(
        GRADIENTS,
        ("kernels", "--arch", "x86_64_v3", "--problems", "FILE", "--set", "attention:essential", "--explain"),
    ),
    "architecture of a CPU": Target(
        arch_file("x86_64_v3"),
        _RESPOND,
        beside=_requested({**_PLAN, "kernels": [{"arch": "mine", "spec": GEMM}], "arch_files": ["FILE"]}),
    ),
    "architecture of an AMD GPU": Target(
        arch_file("gfx942"),
        _RESPOND,
        beside=_requested({**_PLAN, "kernels": [{"arch": "mine", "spec": AMD}], "arch_files": ["FILE"]}),
    ),
    "architecture of an NVIDIA GPU": Target(
        arch_file("sm_90a"),
        _RESPOND,
        beside=_requested(
            {
                **_PLAN,
                "kernels": [
                    {
                        "arch": "mine",
                        "spec": {
                            "op": "gemm",
                            "dtype": "bf16",
                            "layout": "rcr",
                            "tile": {"m": 128, "n": 128, "k": 64},
                            "pipeline": "tma",
                            "wave": [2, 1, 1],
                            "warp_tile": [64, 128, 16],
                        },
                    }
                ],
                "arch_files": ["FILE"],
            }
        ),
    ),
    "request to plan": Target(
        {
            **_PLAN,
            "kernels": [{"arch": "x86_64_v3", "spec": GEMM, "origin": "here", "limits": {"max_registers": 16}}],
            "filter": "c.tile_m > 1",
            "toolchains": {"host": "zig"},
            "arch_files": [],
            "models": [],
        },
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
    ),
    "request to expand": Target(
        {"stage": "expand", "config": CONFIG, "archs": ["gfx942"], "limits": {"max_vgpr_spills": 0}},
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
    ),
    "request to choose": Target(
        {
            "stage": "expand",
            "problems": {"trace": "DIR/trace.json", "config": SMALL, "budget_kernels": 2},
            "archs": ["x86_64_v3"],
        },
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
        beside={"trace.json": TRACE},
    ),
    "request of a native library": Target(
        {"stage": "native", "output": "a/libx.so", "sources": ["a/x.c"], "link": ["dl"], "toolchains": {"host": "zig"}},
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
    ),
    "request of a report": Target(
        {
            "stage": "report",
            "manifests": {"a": MANIFEST},
            "costs": {"a": {"kernels": {"gemm_x": {"cpu_s": 1.0, "peak_mb": 3}}}},
        },
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
    ),
    "request of commands": Target(
        {
            "stage": "compile_commands",
            "kernels": [{"arch": "x86_64_v3", "spec": GEMM}],
            "directory": "/tmp/x",
            "toolchains": {},
        },
        ("plan", "--request", "FILE", "--response", "DIR/response.json"),
    ),
    "request of a bundle": Target(
        {
            "library": LIBRARY,
            "sha256": {"x86_64_v3/libgemm.so": DIGEST, "x86_64_v3/gemm_x.o": DIGEST},
            "root": ".",
            "materials": [{"files": {"a.c": DIGEST}}, {"requirements": f"jinja2==3.1.6 --hash=sha256:{DIGEST}\n"}],
        },
        ("bundle", "--request", "FILE", "--folder", "DIR/out"),
    ),
    "request of a wheel": Target(
        {
            "project": "DIR/pyproject.toml",
            "files": {"a.txt": "DIR/pyproject.toml"},
            "output": "DIR/out/a.whl",
            "materials": [],
        },
        ("wheel", "--request", "FILE", "--response", "DIR/response.json"),
        beside={"pyproject.toml": '[project]\nname = "a"\nversion = "1"\n'},
    ),
    "tree folders": Target(
        {
            "zig": "DIR",
            "abi": "HEADERS",
            "gemm": "HEADERS",
            "cpu_common": "HEADERS",
            "cpu_gemm": "HEADERS",
            "cpu_common_launcher": "HEADERS",
            "cpu_gemm_launcher": "HEADERS",
            "shared_launcher": "HEADERS",
            "widths": "HEADERS",
        },
        (
            "build",
            "--arch",
            "x86_64_v3",
            "--spec",
            "DIR/spec.json",
            "--name",
            "lib",
            "--trees",
            "FILE",
            "--out",
            "DIR/out",
            "--ninja",
        ),
        beside={"spec.json": GEMM},
    ),
    "manifest": Target(MANIFEST, ("info", "DIR"), name="manifest.json"),
    "costs": Target(
        {"kernels": {"gemm_x": {"cpu_s": 1.0, "peak_mb": 3}}},
        ("info", "DIR"),
        name="costs.json",
        beside={"manifest.json": MANIFEST},
    ),
    "GEMM problems": Target(
        {
            "op": "gemm",
            "problems": [{"m": 16, "n": 64, "k": 64, "dtype": "bf16"}, {"m": 1, "n": 8, "k": 8, "layout": "rrr"}],
        },
        ("problems", "FILE"),
        "tile-engine",
    ),
    "convolution problems": Target(
        {
            "op": "convolution",
            "problems": [
                {
                    "direction": "forward",
                    "n": 1,
                    "g": 2,
                    "k": 8,
                    "c": 8,
                    "y": 3,
                    "x": 3,
                    "hi": 14,
                    "wi": 14,
                    "stride_h": 1,
                    "pad_h": 1,
                }
            ],
        },
        ("problems", "FILE"),
        "tile-engine",
    ),
    "attention problems": Target(
        {
            "op": "attention",
            "problems": [
                {
                    "direction": "forward",
                    "batch": 2,
                    "seqlen_q": 16,
                    "seqlen_k": 64,
                    "nhead_q": 4,
                    "nhead_k": 2,
                    "hdim_q": 64,
                    "soft_cap": 0.5,
                    "window_left": -1,
                    "mask": "none",
                    "dtype": "fp16",
                    "page_size": 0,
                }
            ],
        },
        ("problems", "FILE"),
        "tile-engine",
    ),
    "trait configuration": Target(
        {
            "variant": "gemm_universal",
            "trait_config": {"pipeline": {"values": ["compv3"]}, "tile_m": {"min": 64, "max": 256, "step": 64}},
            "problem": {"dtype": "fp16", "layout": "rcr"},
        },
        ("enumerate", "FILE", "--arch", "gfx942", "--count-only"),
        "tile-engine",
    ),
}


HEADERS = Path(__file__).resolve().parents[2] / "dispatcher_cpp"


def lay_out(target: Target, folder: Path, text: bytes) -> list[str]:
    """Write a target's files into ``folder``, the mutated one with ``text``; its arguments."""
    file = folder / target.name

    def named(one: str) -> str:
        return one.replace("FILE", str(file)).replace("DIR", str(folder)).replace("HEADERS", str(HEADERS))

    (folder / "ziglang").mkdir()
    (folder / "ziglang" / "zig").touch()  # a toolchain for plans that nobody runs
    for name, content in target.beside.items():
        written = content if isinstance(content, str) else json.dumps(content)
        (folder / name).write_text(named(written), "utf-8")
    file.write_bytes(text.replace(b"DIR", str(folder).encode()).replace(b"HEADERS", str(HEADERS).encode()))
    return [named(one) for one in target.arguments]
