"""Forward attention on a GPU: cases, their float64 reference in torch, and a kernel's run on one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from attention_abi import MASKS, Args, AttentionKernel, Strides, problem, strides
from places import DEVICE, current_stream, synchronize
from raw_abi import DTYPES

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
# Twice what torch's own kernels show against float64 on such operands: rounded probabilities and results.
TOLERANCE = {"bf16": 4.6e-3, "fp16": 6e-4}
LSE_TOLERANCE = 2e-5
BIASES = ("none", "elementwise", "alibi")
GUARD = 4096  # elements before and behind O that nobody may write
BESIDE = 8  # elements behind each row of an operand, which are NaN: nobody may use those of Q, K and V, nor write O's


@dataclass(frozen=True)
class Case:
    """Lengths of queries and keys of each request; `group` packs them, otherwise all have the first lengths.

    ``counts`` are numbers of keys that count in batch mode. A window has -1 for no bound. A bias is "elementwise", the
    same for all requests in batch mode, or "alibi".
    """

    queries: tuple[int, ...]
    keys: tuple[int, ...]
    heads: tuple[int, int] = (4, 2)
    group: bool = False
    mask: str = "none"
    window: tuple[int, int] = (-1, -1)
    soft_cap: float = 0.0
    sink: bool = False
    lse: bool = True
    counts: tuple[int, ...] = ()
    heads_first: bool = False
    bias: str = "none"

    @property
    def causal(self) -> bool:
        return self.window == (-1, 0)

    def spec_mask(self) -> str:
        return self.mask if self.mask == "none" or self.causal else "generic"

    def bounds(self) -> list[tuple[int, int, int, int]]:
        """First row and number of rows of each request's queries, then of its keys."""
        ranges, q, k = [], 0, 0
        for n, m in zip(self.queries, self.keys, strict=True):
            ranges.append((q, n, k, m))
            q, k = q + n, k + m
        return ranges


def visible(n: int, m: int, mask: str, window: tuple[int, int], device: str) -> torch.Tensor:
    """Which of m keys each of n queries sees."""
    i = torch.arange(n, device=device)[:, None] + (m - n if mask == "bottom_right" else 0)
    j = torch.arange(m, device=device)[None]
    left, right = window
    seen = torch.ones(n, m, dtype=torch.bool, device=device)
    return seen & (j >= i - left if left >= 0 else seen) & (j <= i + right if right >= 0 else seen)


def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    case: Case,
    scale: float,
    sinks: torch.Tensor | None,
    bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """O and LSE of one request in float64; tensors are rows x heads x hdim, bias heads x queries x keys or slopes."""
    group = q.shape[1] // k.shape[1]
    q, k, v = (x.double().transpose(0, 1) for x in (q, k, v))
    k, v = (x.repeat_interleave(group, 0) for x in (k, v))
    s = q @ k.transpose(1, 2) * scale
    if case.soft_cap:
        s = case.soft_cap * torch.tanh(s / case.soft_cap)
    if case.bias == "alibi":
        place = torch.arange(s.shape[1], device=s.device)[:, None]
        place = place + (s.shape[2] - s.shape[1] if case.mask != "top_left" else 0)
        s = s - bias.double()[:, None, None] * (place - torch.arange(s.shape[2], device=s.device)).abs()
    elif bias is not None:
        s = s + bias.double()
    s = s.masked_fill(~visible(q.shape[1], k.shape[1], case.mask, case.window, str(q.device)), -math.inf)
    all_scores = s if sinks is None else torch.cat([s, sinks.double()[:, None, None].expand(-1, s.shape[1], 1)], -1)
    lse = torch.logsumexp(all_scores, -1) if all_scores.shape[-1] else s.new_full(s.shape[:2], -math.inf)
    p = torch.where(torch.isneginf(lse)[..., None], 0.0, torch.exp(s - torch.nan_to_num(lse, neginf=0.0)[..., None]))
    return (p @ v).transpose(0, 1), lse


@dataclass
class Operands:
    """Tensors of one case, with poisoned results between guards."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    o: torch.Tensor
    buffer: torch.Tensor
    lse: torch.Tensor
    sinks: torch.Tensor | None
    cu_q: torch.Tensor
    cu_k: torch.Tensor
    counts: torch.Tensor | None
    bias: torch.Tensor | None


def operands(case: Case, dtype: str, hdims: tuple[int, int], seed: int = 0) -> Operands:
    """Random operands: rows x heads x hdim in group mode, else requests x rows x heads x hdim or heads first."""
    random = torch.Generator(DEVICE).manual_seed(seed)
    h, hk = case.heads
    batch = len(case.queries)

    def tensor(rows: int, heads: int, hdim: int) -> torch.Tensor:
        shape = (rows, heads, hdim)
        if not case.group:
            shape = (batch, heads, rows, hdim) if case.heads_first else (batch, rows, heads, hdim)  # type: ignore[assignment]
        wide = torch.full((*shape[:-1], hdim + BESIDE), math.nan, device=DEVICE, dtype=TYPES[dtype])
        wide[..., :hdim] = torch.randn(shape, generator=random, device=DEVICE, dtype=torch.float32)
        return wide[..., :hdim]

    rows_q = sum(case.queries) if case.group else case.queries[0]
    rows_k = sum(case.keys) if case.group else case.keys[0]
    q, k, v = tensor(rows_q, h, hdims[0]), tensor(rows_k, hk, hdims[0]), tensor(rows_k, hk, hdims[1])
    shape = (*q.shape[:-1], hdims[1] + BESIDE)
    buffer = torch.full((math.prod(shape) + 2 * GUARD,), math.nan, device=DEVICE, dtype=TYPES[dtype])
    o = buffer[GUARD : GUARD + math.prod(shape)].view(shape)[..., : hdims[1]]
    lse = torch.full((h, rows_q) if case.group else (batch, h, rows_q), math.nan, device=DEVICE)
    sums = [torch.tensor([0, *lengths], device=DEVICE).cumsum(0).int() for lengths in (case.queries, case.keys)]
    sinks = torch.randn(h, generator=random, device=DEVICE) if case.sink else None
    counts = torch.tensor(case.counts, device=DEVICE, dtype=torch.int32) if case.counts else None
    bias = None
    if case.bias == "alibi":
        bias = torch.rand(h, generator=random, device=DEVICE) * 0.02
    elif case.bias == "elementwise":
        bias = torch.randn(h, rows_q, max(*case.keys, 1), generator=random, device=DEVICE).to(TYPES[dtype])
    return Operands(q, k, v, o, buffer, lse, sinks, sums[0], sums[1], counts, bias)


def biases_of(kernel: AttentionKernel) -> list[str]:
    """What a kernel adds to scores; some choose by the problem."""
    return [name for bit, name in enumerate(BIASES) if kernel.traits.biases >> bit & 1]


def caps_of(kernel: AttentionKernel) -> list[float]:
    """Soft caps, none among them where the kernel serves both."""
    return [cap for bit, cap in enumerate((0.0, 5.0)) if kernel.traits.soft_caps >> bit & 1]


def scores_of(kernel: AttentionKernel, seed: int) -> dict[str, Any]:
    """A bias or a soft cap in turns."""
    kinds = [{"bias": bias, "soft_cap": 0.0} for bias in biases_of(kernel) if 0.0 in caps_of(kernel)]
    kinds += [{"bias": "none", "soft_cap": cap} for cap in caps_of(kernel) if cap]
    return kinds[seed % len(kinds)]


def hdims_of(kernel: AttentionKernel, seed: int) -> tuple[int, int]:
    """The head dimensions of the kernel, and in turns smaller ones, which may differ."""
    q, v = kernel.traits.hdim_q or kernel.traits.hdim_v, kernel.traits.hdim_v
    less = ((0, 0), (32, 32), (48, 48), (0, 64), (56, 56), (8, 8), (0, 0), (40, 40), (24, 24), (64, 128))
    smaller = less[seed % len(less)]
    return tuple(most - by if most > by else most for most, by in zip((q, v), smaller, strict=True))  # type: ignore[return-value]


def problem_of(case: Case, dtype: str, x: Operands) -> Any:
    """The problem of a part that computes the whole case."""
    order = "sh" if case.group else "bhs" if case.heads_first else "bsh"
    code, hdims = DTYPES[dtype], (x.q.shape[-1], x.v.shape[-1])
    made = problem(
        group=int(case.group),
        mask=MASKS[case.mask],
        lse=int(case.lse),
        sink=int(case.sink),
        kv_lengths=int(bool(case.counts)),
        batch=len(case.queries),
        max_seqlen_q=max(case.queries),
        max_seqlen_k=max(case.keys),
        scale=hdims[0] ** -0.5,
        soft_cap=case.soft_cap,
    )
    made.dtype_q = made.dtype_kv = made.dtype_o = code
    made.heads_q, made.heads_kv = case.heads
    made.hdim_q, made.hdim_v = hdims
    made.window_left, made.window_right = case.window
    if case.group:
        made.total_q, made.total_k = sum(case.queries), sum(case.keys)
    for name, tensor in (("q", x.q), ("k", x.k), ("v", x.v), ("o", x.o)):
        setattr(made, name, strides(tensor, order))
    if case.bias != "none":
        made.bias = BIASES.index(case.bias)
    if case.bias == "elementwise":
        made.dtype_bias, made.bias_strides = code, Strides(0, x.bias.stride(0), x.bias.stride(1))
    return made


def args_of(case: Case, x: Operands) -> Args:
    """The operands of one launch."""
    made = Args(struct_size=240)
    given = {"q": x.q, "k": x.k, "v": x.v, "o": x.o, "sinks": x.sinks, "seqlens_k": x.counts, "bias": x.bias}
    for name, tensor in given.items():
        setattr(made, name, tensor.data_ptr() if tensor is not None else None)
    if case.lse:
        made.lse = x.lse.data_ptr()
    if case.group:
        made.cu_seqlens_q, made.cu_seqlens_k = x.cu_q.data_ptr(), x.cu_k.data_ptr()
    return made


def run(kernel: AttentionKernel, asked: Any, args: Any) -> None:
    """One launch with a poisoned workspace."""
    nbytes = kernel.workspace_bytes(asked)
    workspace = torch.full((nbytes + 256,), 255, device=DEVICE, dtype=torch.uint8)
    kernel.launch(kernel.plan(asked), args, current_stream(), workspace.data_ptr(), nbytes)
    synchronize()
    assert bool((workspace[nbytes:] == 255).all()), "the kernel wrote behind its workspace"


def split(case: Case, x: Operands, tensor: torch.Tensor, request: int, keys: bool) -> torch.Tensor:
    """Rows x heads x hdim of one request."""
    if case.group:
        q, n, k, m = case.bounds()[request]
        return tensor[k : k + m] if keys else tensor[q : q + n]
    rows = tensor[request].transpose(0, 1) if case.heads_first else tensor[request]
    return rows[: case.counts[request]] if keys and case.counts else rows


def compare(case: Case, dtype: str, x: Operands, skip: int | None = None) -> tuple[float, float]:
    """Errors of O (norm of the difference over that of the reference) and LSE (largest); wrong ones are an error."""
    got, expected, worst = [], [], 0.0
    for request in range(len(case.queries)):
        if request == skip:
            continue
        q, o = (split(case, x, tensor, request, False) for tensor in (x.q, x.o))
        k, v = (split(case, x, tensor, request, True) for tensor in (x.k, x.v))
        bias = x.bias
        if case.bias == "elementwise":
            first = case.bounds()[request][0] if case.group else 0
            bias = x.bias[:, first : first + len(q), : len(k)]
        want, lse = reference(q, k, v, case, q.shape[-1] ** -0.5, x.sinks, bias)
        got.append(o.double().flatten())
        expected.append(want.flatten())
        if case.lse:
            first = case.bounds()[request][0]
            kernel_lse = x.lse[:, first : first + len(q)] if case.group else x.lse[request]
            assert bool((torch.isneginf(kernel_lse) == torch.isneginf(lse)).all()), "-inf of LSE"
            assert not bool(torch.isnan(kernel_lse).any()), "NaN in LSE"
            difference = torch.where(torch.isneginf(lse), 0.0, kernel_lse.double() - lse).abs()
            worst = max(worst, float(difference.max()) if difference.numel() else 0.0)
    one, other = torch.cat(got), torch.cat(expected)
    assert not bool(torch.isnan(one).any()), "NaN in O"
    assert bool(x.buffer[:GUARD].isnan().all() and x.buffer[-GUARD:].isnan().all()), "written beyond O"
    beside = x.buffer[GUARD:-GUARD].view(-1, x.o.shape[-1] + BESIDE)[:, x.o.shape[-1] :]
    assert bool(beside.isnan().all()), "written beside rows of O"
    error = float((one - other).norm() / other.norm().clamp_min(1e-30)) if one.numel() else 0.0
    assert error <= TOLERANCE[dtype], f"error {error:.2e}"
    assert worst <= LSE_TOLERANCE * (100 if case.soft_cap else 1), f"error {worst:.2e} of LSE"
    return error, worst


def lengths_of(cumulative: list[int]) -> list[int]:
    """Differences of neighbours."""
    return [b - a for a, b in pairwise(cumulative)]


__all__ = ["Case", "Operands", "Strides", "args_of", "compare", "operands", "problem_of", "run"]
