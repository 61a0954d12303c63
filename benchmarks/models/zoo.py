"""Models of the transformers package with random weights, with published layer sizes and few layers.

Each has works: the computations of a user.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import transformers

VOCABULARY = 32000  # of every language model here: with published sizes, the last layer would dominate
PAST = 255  # tokens in the cache before a decode


@dataclass(frozen=True)
class Work:
    """One call of a model.

    :ivar kind: "forward", "decode" (one token after PAST others) or "step" (a loss and its gradients).
    :ivar batch: sequences or images.
    :ivar length: tokens of each sequence, or samples along one side of a model's input.
    """

    kind: str
    batch: int
    length: int = 1

    def __str__(self) -> str:
        """Label in tables, such as ``forward 8x512``."""
        return f"{self.kind} {self.batch}" if self.kind == "decode" else f"{self.kind} {self.batch}x{self.length}"


@dataclass(frozen=True)
class Model:
    """A model's class, the arguments of its configuration, and its works."""

    kind: str
    sizes: Mapping[str, Any]
    works: tuple[Work, ...]
    inputs: str = "text"

    def make(self, device: str, dtype: torch.dtype) -> Any:
        """Make the model with random weights."""
        cls = getattr(transformers, self.kind)
        with torch.device(device):
            model = cls(cls.config_class(**self.sizes))
        for layer in model.modules():
            if isinstance(layer, torch.nn.Conv2d):  # the package's own initialisation vanishes within a few layers
                torch.nn.init.kaiming_normal_(layer.weight)
        return model.to(dtype).eval()


_Sizes = tuple[int, int]


def _language(batches: tuple[int, ...], prompts: tuple[_Sizes, ...], step: _Sizes) -> tuple[Work, ...]:
    prefill = tuple(Work("forward", *prompt) for prompt in prompts)
    return (*prefill, *(Work("decode", batch) for batch in batches), Work("step", *step))


_SERVED = _language((1, 64, 144), ((1, 2048), (1, 200), (8, 512)), (1, 2048))
_ENCODED = (Work("forward", 1, 200), Work("forward", 8, 512), Work("step", 8, 512))
_SEEN = (Work("forward", 1, 224), Work("forward", 64, 224), Work("step", 64, 224))
_SILENT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
_GPT_2: dict[str, Any] = {"vocab_size": VOCABULARY, "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}


def _grouped(hidden: int, inner: int, layers: int, heads: int, kv_heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"vocab_size": VOCABULARY, "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return {**sizes, "num_attention_heads": heads, "num_key_value_heads": kv_heads, **more}


def _images(hidden: int, inner: int, layers: int, heads: int, side: int) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers}
    return {**sizes, "num_attention_heads": heads, "image_size": side, "patch_size": 16, **_SILENT}


def _speech(width: int, inner: int, layers: int, heads: int) -> dict[str, Any]:
    parts = ("encoder", "decoder")
    each = {f"{part}_{what}": size for part in parts for what, size in (("layers", layers), ("ffn_dim", inner))}
    heads_of = {f"{part}_attention_heads": heads for part in parts}
    return {"vocab_size": VOCABULARY, "num_mel_bins": 128, "d_model": width, "dropout": 0.0, **each, **heads_of,
            "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}  # fmt: skip


MODELS: dict[str, Model] = {
    "Llama 3 8B, 4 layers": Model("LlamaForCausalLM", _grouped(4096, 14336, 4, 32, 8), _SERVED),
    "Qwen3 32B, 2 layers": Model("Qwen3ForCausalLM", _grouped(5120, 25600, 2, 64, 8, head_dim=128), _SERVED),
    "Gemma 2 9B, 2 layers": Model("Gemma2ForCausalLM", _grouped(3584, 14336, 2, 16, 8, head_dim=256), _SERVED),
    "Qwen1.5 MoE, 2 layers": Model(
        "Qwen2MoeForCausalLM",
        _grouped(2048, 5632, 2, 16, 16, num_experts=60, num_experts_per_tok=4, moe_intermediate_size=1408,
                 shared_expert_intermediate_size=5632),
        _SERVED,
    ),
    "GPT-2 medium, 8 layers": Model(
        "GPT2LMHeadModel", {**_GPT_2, "n_embd": 1024, "n_layer": 8, "n_head": 16, "n_positions": 2048}, _SERVED
    ),
    "BERT large, 8 layers": Model(
        "BertForMaskedLM",
        {"vocab_size": VOCABULARY, **_images(1024, 4096, 8, 16, 0), "max_position_embeddings": 512}, _ENCODED,
    ),
    "T5 large, 4 + 4 layers": Model(
        "T5ForConditionalGeneration",
        {"vocab_size": VOCABULARY, "d_model": 1024, "d_kv": 64, "d_ff": 4096, "num_layers": 4, "num_heads": 16,
         "dropout_rate": 0.0, "decoder_start_token_id": 0, "pad_token_id": 0},
        _ENCODED,
    ),
    "Whisper large, 2 + 2 layers": Model(
        "WhisperForConditionalGeneration", _speech(1280, 5120, 2, 20),
        (Work("forward", 1, 3000), Work("forward", 8, 3000), Work("step", 8, 3000)), "speech",
    ),
    "ViT large, 8 layers": Model("ViTForImageClassification", _images(1024, 4096, 8, 16, 224), _SEEN, "images"),
    "ResNet-50": Model("ResNetForImageClassification", {"num_labels": 1000}, _SEEN, "images"),
    "ConvNeXt base": Model(
        "ConvNextForImageClassification",
        {"hidden_sizes": [128, 256, 512, 1024], "depths": [3, 3, 27, 3], "num_labels": 1000}, _SEEN, "images",
    ),
    "EfficientNet-B0": Model(
        "EfficientNetForImageClassification",
        {"image_size": 224, "width_coefficient": 1.0, "depth_coefficient": 1.0, "hidden_dim": 1280, "dropout_rate": 0.0,
         "drop_connect_rate": 0.0, "num_labels": 1000},
        _SEEN, "images",
    ),
}  # fmt: skip


# For CPUs: layers narrower by these factors, with the same operators.
_NARROWER = {
    "num_attention_heads": 4, "num_key_value_heads": 4, "n_head": 4, "num_heads": 4, "head_dim": 2, "num_experts": 4,
}  # fmt: skip
_WIDTHS = ("hidden_size", "intermediate_size", "n_embd", "d_model", "d_ff", "d_kv", "ffn_dim", "hidden_sizes")


def small(model: Model) -> Model:
    """The model for CPUs: an eighth of the published widths, single images and prompts of 128 tokens."""

    def narrowed(name: str, size: Any) -> Any:
        if name in ("hidden_sizes", "d_kv"):
            return [one // 2 for one in size] if isinstance(size, list) else size // 2
        part = next((by for key, by in _NARROWER.items() if name.endswith(key)), 8 if name.endswith(_WIDTHS) else 1)
        return max(1, size // part) if part > 1 else size

    sizes = {name: narrowed(name, size) for name, size in model.sizes.items()}
    longest = max(work.length for work in model.works)
    length = {"text": 128, "images": 224, "speech": longest}[model.inputs]
    works = [Work(kind, 1, 1 if kind == "decode" else length) for kind in dict.fromkeys(w.kind for w in model.works)]
    return Model(model.kind, sizes, tuple(works), model.inputs)


def inputs(model: Model, work: Work, device: str, dtype: torch.dtype) -> dict[str, Any]:
    """Seeded arguments of one call; for a decode, those other than the cache."""
    drawn = torch.Generator(device).manual_seed(0)

    def tokens(length: int) -> torch.Tensor:
        return torch.randint(3, VOCABULARY, (work.batch, length), device=device, generator=drawn)

    def values(*shape: int) -> torch.Tensor:
        return torch.randn(work.batch, *shape, device=device, generator=drawn).to(dtype)

    if model.inputs == "images":
        labels = torch.randint(0, 2, (work.batch,), device=device, generator=drawn)
        given = {"pixel_values": values(3, work.length, work.length), "labels": labels}
    elif model.inputs == "speech":
        given = {"input_features": values(128, work.length), "labels": tokens(200)}
    else:
        asked = tokens(work.length)
        given = {"input_ids": asked, "labels": asked}
    if work.kind != "step" and not model.kind.endswith("ConditionalGeneration"):  # its decoder reads them
        del given["labels"]
    return given


def decode(model: Any, work: Work, device: str) -> Callable[[], Any]:
    """Decode one token after PAST others, whose cache stays unchanged."""
    tokens = torch.full((work.batch, PAST), 7, device=device)
    with torch.no_grad():
        cache = model(input_ids=tokens, use_cache=True).past_key_values
    token = tokens[:, :1]

    def call() -> Any:
        past = copy.copy(cache)
        past.layers = [copy.copy(layer) for layer in cache.layers]
        return model(input_ids=token, past_key_values=past, use_cache=True).logits

    return call
