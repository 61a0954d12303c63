"""Models of the transformers package, with random weights at small sizes, adopted: logits and ten training steps.

Their code knows nothing of kernels. What is compared is the same model without them, in fp32.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers

from kernelwright.torch import adopt, release, report, reset_report

SIZES: dict[str, Any] = {"vocab_size": 97, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4}
LAYERS: dict[str, Any] = {**SIZES, "intermediate_size": 96, "max_position_embeddings": 64}
SHARED: dict[str, Any] = {**LAYERS, "num_key_value_heads": 2}
SILENT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
Inputs = Callable[[], dict[str, torch.Tensor]]


def text(padded: bool = True) -> dict[str, torch.Tensor]:
    tokens, mask = torch.randint(3, 97, (2, 12)), torch.ones(2, 12, dtype=torch.long)
    mask[1, 9:] = 0
    given = {"input_ids": tokens, "labels": tokens}
    return {**given, "attention_mask": mask} if padded else given


def images() -> dict[str, torch.Tensor]:
    return {"pixel_values": torch.randn(2, 3, 32, 32), "labels": torch.randint(0, 7, (2,))}


def speech() -> dict[str, torch.Tensor]:
    return {"input_features": torch.randn(2, 16, 40), "labels": torch.randint(3, 97, (2, 12))}


MODELS: dict[str, tuple[str, dict[str, Any], Inputs, set[str]]] = {
    "Llama": ("LlamaForCausalLM", SHARED, text, {"gemm", "attention"}),
    "Qwen2Moe": (
        "Qwen2MoeForCausalLM",
        {**SHARED, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48,
         "shared_expert_intermediate_size": 96},
        text, {"gemm", "attention"},
    ),
    "Gemma2": ("Gemma2ForCausalLM", {**SHARED, "head_dim": 16, "sliding_window": 8}, text, {"gemm"}),
    "GPT2": (
        "GPT2LMHeadModel",
        {"vocab_size": 97, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4, "resid_pdrop": 0.0,
         "embd_pdrop": 0.0, "attn_pdrop": 0.0},
        text, {"gemm", "attention"},
    ),
    "Bert": ("BertForMaskedLM", {**LAYERS, **SILENT}, text, {"gemm", "attention"}),
    "T5": (
        "T5ForConditionalGeneration",
        {"vocab_size": 97, "d_model": 64, "d_kv": 16, "d_ff": 96, "num_layers": 2, "num_heads": 4, "dropout_rate": 0.0,
         "decoder_start_token_id": 0, "pad_token_id": 0},
        lambda: text(padded=False), {"gemm"},
    ),
    "Whisper": (
        "WhisperForConditionalGeneration",
        {"vocab_size": 97, "num_mel_bins": 16, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96,
         "max_source_positions": 20, "max_target_positions": 32, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2, "decoder_start_token_id": 1, "dropout": 0.0},
        speech, {"gemm", "attention", "conv"},
    ),
    "ViT": (
        "ViTForImageClassification",
        {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96,
         "image_size": 32, "patch_size": 8, "num_labels": 7, **SILENT},
        images, {"gemm", "attention", "conv"},
    ),
    "ResNet": (
        "ResNetForImageClassification",
        {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "layer_type": "basic", "num_labels": 7},
        images, {"gemm", "conv"},
    ),
    "ConvNext": (
        "ConvNextForImageClassification",
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "num_labels": 7, "image_size": 32},
        images, {"gemm", "conv"},
    ),
}  # fmt: skip


def losses(model: Any, batches: list[dict[str, torch.Tensor]]) -> list[float]:
    model.train()
    steps, history = torch.optim.AdamW(model.parameters(), 1e-3), []
    for batch in batches:
        steps.zero_grad()
        loss = model(**batch).loss
        loss.backward()
        steps.step()
        history.append(loss.item())
    return history


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_training(name: str) -> None:
    kind, sizes, inputs, operators = MODELS[name]
    made = getattr(transformers, kind)
    model = made(made.config_class(**sizes)).eval()
    ours = copy.deepcopy(model)
    done = adopt(ours, strict=True)
    assert done.replaced and list(ours.state_dict()) == list(model.state_dict())
    batches = [inputs() for _ in range(10)]
    reset_report()
    with torch.no_grad():
        torch.testing.assert_close(ours(**batches[0]).logits, model(**batches[0]).logits, rtol=1e-3, atol=1e-4)
    assert operators <= {one.operator for one in report().operators}
    our_losses = losses(ours, batches)
    torch.testing.assert_close(torch.tensor(our_losses), torch.tensor(losses(model, batches)), rtol=1e-3, atol=1e-3)
    assert sum(one.ours for one in report().operators) > 0
    release(ours)
    assert [type(one) for one in ours.modules()] == [type(one) for one in model.modules()]
