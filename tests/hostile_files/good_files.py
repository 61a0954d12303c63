"""A good file of every kind that users give to ``kernelwright``."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from kernelwright.codegen.heuristics.model import FORMAT, VERSION, digest_of
from kernelwright.codegen.heuristics.testing.random_model import random_content

GEMM = {
    "op": "gemm",
    "dtype": "fp32",
    "layout": "rrr",
    "tile": {"m": 48, "n": 64, "k": 256},
    "warp_tile": {"m": 6, "n": 16, "k": 1},
}
AMD = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": {"m": 128, "n": 128, "k": 32},
    "wave": {"m": 2, "n": 2, "k": 1},
    "warp_tile": {"m": 32, "n": 32, "k": 16},
    "pipeline": "compv3",
    "epilogue": "cshuffle",
    "scheduler": "intrawave",
}
CONFIG = {
    "op": "gemm",
    "problem": {"dtype": "fp16", "layout": "rcr", "warp_tile": [32, 32, 16], "pipeline": "compv3"},
    "tile_config": {
        "tile_m": {"min": 64, "max": 128, "step": 64, "exclude": [96]},
        "tile_n": {"values": [128]},
        "tile_k": {"values": [32]},
        "wave": {"values": [[2, 2, 1]]},
    },
    "trait_config": {"pad_k": {"values": [True, False]}, "pad_m": [True]},
    "variants": ["standard", "multi_d"],
    "multi_d_config": {"elementwise_ops": ["MultiDAdd"], "num_d_tensors": [1]},
    "limits": {"max_vgpr_spills": 0},
}
SMALL = {
    "op": "gemm",
    "problem": {"dtype": "fp32", "layout": "rrr"},
    "tile_config": {"tile_m": [48], "tile_n": [64], "tile_k": [256], "warp_tile": [[6, 16, 1]]},
}
TRACE = {
    "version": 1,
    "problems": [
        {
            "op": "gemm",
            "arch": "x86_64_v3",
            "problem": {"m": 16, "n": 64, "k": 64, "dtype_a": "fp32", "layout": "rrr"},
            "count": 3,
            "unserved": 1,
        },
        {
            "op": "gemm",
            "arch": "x86_64_v3",
            "problem": {
                "m": 48,
                "n": 64,
                "k": 256,
                "layout": "rrr",
                "lda": 256,
                "alpha": 0.5,
                "beta": 0.0,
                "split_k": 0,
            },
            "count": 1,
            "unserved": 0,
        },
    ],
}
CONVOLUTIONS = {
    "version": 1,
    "problems": [
        {
            "op": "convolution",
            "arch": "x86_64_v3",
            "problem": {
                **{"direction": "forward", "n": 1, "c": 8, "k": 8, "size": [14, 14], "filter": [3, 3], "groups": 1},
                **{"stride": [1, 1], "dilation": 1, "pad_left": [1, 1], "dtype": "fp32", "activation": "none"},
                **{"alpha": 1.0, "beta": 0.0, "bias": False},
            },
            "count": 2,
        }
    ],
}
ATTENTION = {
    "version": 1,
    "problems": [
        {
            "op": "attention",
            "arch": "x86_64_v3",
            "problem": {
                **{"direction": "forward", "batch": 2, "heads_q": 4, "heads_kv": 2, "seqlen_q": 16, "seqlen_k": 64},
                **{"hdim_q": 64, "hdim_v": 64, "dtype": "fp32", "mask": "top_left", "window": [-1, 0], "scale": 0.125},
                **{"lse": False, "dropout_p": 0.0, "q_strides": [4096, 1024, 64]},
            },
            "count": 2,
        }
    ],
}
GRADIENTS = {
    "version": 1,
    "problems": [
        {
            "op": "attention",
            "arch": "x86_64_v3",
            "problem": {
                **{"direction": "backward", "batch": 2, "heads_q": 4, "heads_kv": 2, "seqlen_q": 16, "seqlen_k": 64},
                **{
                    "hdim_q": 64,
                    "dtype": "bf16",
                    "mask": "top_left",
                    "lse": True,
                    "dropout_p": 0.0,
                    "deterministic": False,
                },
            },
            "count": 2,
        }
    ],
}
DIGEST = "0123456789abcdef" * 4
KERNEL = {
    "name": "gemm_x",
    "identity": DIGEST,
    "arch": "x86_64_v3",
    "spec": GEMM,
    "features": "",
    "objects": ["x86_64_v3/gemm_x.o"],
    "report": None,
    "expects": {"device_kernels": 0, "matrix_instructions": True, "helpers": []},
    "limits": {},
}
MANIFEST = {
    "schema_version": 1,
    "abi_version": 0,
    "name": "gemm",
    "arch": "x86_64_v3",
    "backend": "cpu",
    "device": "a CPU",
    "library": "libgemm.so",
    "sha256": DIGEST,
    "toolchains": {"host": "clang"},
    "models": [{"name": "m", "op": "gemm", "dtypes": ["fp32"], "arch": "x86_64_v3", "sha256": DIGEST}],
    "kernels": [
        {
            **{key: KERNEL[key] for key in ("name", "identity", "arch", "spec", "features")},
            "object_sha256": DIGEST,
            "resources": {"vgpr": 12, "lds_bytes": 0, "code_bytes": 100, "occupancy_percent": 50.0},
        }
    ],
}
LIBRARY = {
    **{key: MANIFEST[key] for key in ("name", "arch", "backend", "abi_version", "device", "toolchains", "models")},
    "library": "x86_64_v3/libgemm.so",
    "wave_size": 1,
    "compute_unit": None,
    "kernels": [KERNEL],
}


def model(op: str = "gemm") -> dict[str, Any]:
    content = random_content(7, op=op, trees=4)
    content |= {"format": FORMAT, "version": VERSION}
    return signed(content)


def signed(content: Any) -> Any:
    """A model's content with the digest that it states: whoever alters a file can compute it."""
    if isinstance(content, dict):
        try:
            return {**content, "sha256": digest_of(content)}
        except (TypeError, ValueError):
            return content
    return content


def arch_file(name: str) -> dict[str, Any]:
    raw: dict[str, Any] = json.loads(
        resources.files("kernelwright.files").joinpath("archs", f"{name}.json").read_text("utf-8")
    )
    return {**raw, "name": "mine"}
