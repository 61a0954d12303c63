"""Short descriptions of kernels for people, from their specs as JSON values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Words = Callable[[Mapping[str, Any]], str]

_ATTENTION_WORDS = ("mask", "bias", "qscale", "rope")
_ATTENTION_FLAGS = ("lse", "dropout", "logits_soft_cap", "paged_kv", "sink", "dbias", "deterministic")


def short_name(spec: Mapping[str, Any], name: str) -> str:
    """Describe a kernel in the words of its operation; ``name`` if the operation or its spec is unknown here.

    Kernels that differ only in details, such as padding, may share a short name.
    """
    try:
        return _WORDS[spec["op"]](spec)
    except (KeyError, TypeError):
        return name


def register_words(op: str, words: Words) -> None:
    """Register the wording of specs with this ``op``. ``words`` may raise KeyError or TypeError for another spec."""
    _WORDS[op] = words


def _gemm(spec: Mapping[str, Any]) -> str:
    """E.g. ``bf16 rcr 128x128x32 +D gelu``: operands, layouts of A, B and C, tile, and special features."""
    a, b, c = spec["dtype_a"], spec["dtype_b"], spec["dtype_c"]
    words = [f"{a if a == b else f'{a}*{b}'}{'' if c == a else f'->{c}'}", spec["layout"], _extents(spec["tile"])]
    words += [spec["pipeline"]] if spec.get("pipeline", "packed") != "packed" else []
    if spec.get("activation") == "any":
        return " ".join([*words, "any epilogue", *_flags(spec)])
    number = spec.get("num_d", 0)
    if number:
        words.append(f"{'*' if spec.get('d_op') == 'multiply' else '+'}{number if number > 1 else ''}D")
    words += [spec["activation"]] if spec.get("activation", "none") != "none" else []
    return " ".join([*words, *_flags(spec)])


def _flags(spec: Mapping[str, Any]) -> list[str]:
    streamed = [f"stream_k {spec['stream_k']}"] if spec.get("stream_k", "none") != "none" else []
    return [*streamed, *(one for one in ("batched", "grouped", "split_k", "preshuffle", "persistent") if spec.get(one))]


def _convolution(spec: Mapping[str, Any]) -> str:
    """E.g. ``forward bf16 nhwgc 128x128x32 +bias gelu``: direction, dtype, layout, tile, and special features."""
    words = [spec["direction"], spec["dtype"], spec["layout"], _extents(spec["tile"])]
    words += [spec["pipeline"]] if spec.get("pipeline", "packed") != "packed" else []
    words += ["depthwise"] if spec.get("depthwise") else []
    if spec.get("activation") == "any":
        return " ".join([*words, "any epilogue"])
    words += [f"+{part}" for part in ("bias", "residual") if spec.get(part)]
    words += [spec["activation"]] if spec.get("activation", "none") != "none" else []
    return " ".join([*words, *(part for part in ("split_image", "two_stage") if spec.get(part))])


def _attention(spec: Mapping[str, Any]) -> str:
    """E.g. ``fwd bf16 h128 128x64 generic mask``: family, dtype, head dimension, queries by keys, features."""
    same = spec["hdim_q"] == spec.get("hdim_v", spec["hdim_q"])
    words = [spec["family"], spec["dtype"], f"h{spec['hdim_q']}" + ("" if same else f"x{spec['hdim_v']}")]
    tile = spec.get("tile")
    words += [f"{tile['m0']}x{tile['n0']}"] if tile and "m0" in tile and "n0" in tile else []
    words += ["group"] if spec.get("group") else []
    words += [f"{spec[name]} {name}" for name in _ATTENTION_WORDS if spec.get(name, "none") != "none"]
    return " ".join([*words, *(name.replace("_", " ") for name in _ATTENTION_FLAGS if spec.get(name))])


def _extents(extent: Mapping[str, Any]) -> str:
    return f"{extent['m']}x{extent['n']}x{extent['k']}"


_WORDS: dict[str, Words] = {"gemm": _gemm, "convolution": _convolution, "attention": _attention}
