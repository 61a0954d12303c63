"""Convolutions of networks, with their epilogues, and the patch embeddings of vision transformers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelwright.dispatch import ConvProblem
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem, drawn
from kernelwright.tile_engine.problems.networks import Layer, layers, networks

_MOST_IMAGES = {2: 64, 3: 8}
_GRADIENTS = {"backward_data": "gradient of the input", "backward_weight": "gradient of the weight"}
# Forward: batch normalisation is folded into weights and bias for inference, so these are a network's layers.
_FORWARD: dict[str, dict[str, Any]] = {
    "forward": {},
    "forward, bias": {"bias": True},
    "forward, bias and relu": {"bias": True, "activation": "relu"},
    "forward, bias, residual and relu": {"bias": True, "residual": True, "activation": "relu"},
}
# Width, image and patch, from published configurations: ViT-B/16, ViT-H/14, ViT-g/14, SigLIP So400m, DiT-XL/2 (latent).
_PATCHES = {
    "ViT-B/16": Layer(3, 768, 224, 16, stride=16),
    "ViT-H/14": Layer(3, 1280, 224, 14, stride=14),
    "ViT-g/14": Layer(3, 1408, 224, 14, stride=14),
    "SigLIP So400m": Layer(3, 1152, 384, 14, stride=14),
    "DiT-XL/2": Layer(4, 1152, 32, 2, stride=2),
}


def conv_problems(dtype: str) -> Iterator[LayerProblem]:
    """Every layer of every network in three directions, forward with each epilogue; channels innermost."""
    for network in networks():
        for layer in layers(network):
            yield from _layer(network.name, layer, network.dims, dtype)
    for name, layer in _PATCHES.items():
        yield from _layer(f"{name}: patches", layer, 2, dtype)


def _layer(of: str, layer: Layer, dims: int, dtype: str) -> Iterator[LayerProblem]:
    (images,) = drawn(f"{of} {layer}", 1, _MOST_IMAGES[dims])
    n, c, k, size, points = images, layer.c, layer.k, (layer.size,) * dims, (layer.filter,) * dims
    moved: dict[str, Any] = {
        "stride": layer.stride,
        "pad_left": layer.padding,
        "dilation": layer.dilation,
        "groups": layer.groups,
    }
    kind = "depthwise " if layer.groups == layer.c == layer.k else ""
    for use, fields in _FORWARD.items():
        problem = ConvProblem("forward", n, c, k, size, points, dtype=dtype, **moved, **fields)
        yield LayerProblem("convolution", f"{kind}{use}", dtype, of, problem)
    for direction, use in _GRADIENTS.items():
        problem = ConvProblem(direction, n, c, k, size, points, dtype=dtype, **moved)
        yield LayerProblem("convolution", f"{kind}{use}", dtype, of, problem)
