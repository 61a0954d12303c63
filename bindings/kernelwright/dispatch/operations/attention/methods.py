"""The attention calls of :class:`kernelwright.dispatch.Dispatcher`."""

from __future__ import annotations

from typing import Any

from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.native_dispatcher import Methods
from kernelwright.dispatch.operations.attention.arguments import (
    Window,
    descales,
    given_array,
    last_keys,
    pair,
    results,
    wants,
)
from kernelwright.dispatch.operations.attention.calls import AttentionCalls
from kernelwright.dispatch.operations.attention.from_arrays import AppendOptions, AttentionOptions
from kernelwright.problems.literals import AttentionLayout, AttentionMask, QScale


class AttentionMethods(Methods):
    """Attention, its gradients, and KV caches. Takes arrays of every library that :meth:`Dispatcher.gemm` takes."""

    _attention: AttentionCalls

    def _begin(self) -> None:
        super()._begin()
        self._attention = AttentionCalls(self._core)

    def attention(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any = None,
        *,
        lse: Any = False,
        mask: AttentionMask = "none",
        window: Window = None,
        scale: float | None = None,
        bias: Any = None,
        alibi_slopes: Any = None,
        soft_cap: float = 0.0,
        sinks: Any = None,
        dropout_p: float = 0.0,
        seed: int = 0,
        offset: int = 0,
        random_bytes: Any = None,
        cu_seqlens_q: Any = None,
        cu_seqlens_k: Any = None,
        max_seqlen_q: int | None = None,
        max_seqlen_k: int | None = None,
        seqlens_k: Any = None,
        min_seqlen_q: int = 0,
        descale: tuple[Any, Any, Any] | None = None,
        qscale: QScale = "per_tensor",
        scale_blocks: tuple[int, int] = (0, 0),
        scale_o: Any = None,
        dtype: str = "",
        num_splits: int = 0,
        layout: AttentionLayout = "bshd",
        stream: int | None = None,
        own_workspace: bool = False,
    ) -> Any:
        """Compute softmax(scale * q @ k.T, capped, + bias, masked) @ v for every request and head; copies no operand.

        :param q: Q (batch, queries, heads, hdim), or (total, heads, hdim) with ``cu_seqlens_q``; any strides, with a
            contiguous last dimension.
        :param k: K (batch, keys, kv_heads, hdim); equal groups of Q heads share the heads of K and V.
        :param v: V (batch, keys, kv_heads, hdim_v).
        :param out: O (batch, queries, heads, hdim_v), allocated when not given.
        :param lse: True, or an fp32 array (batch, heads, queries), in group mode (heads, total), to return the
            logarithm of each row's sum of exponentials too. It is -inf for rows that see no key; their O is 0.
        :param mask: ``"none"``, ``"top_left"`` or ``"bottom_right"``; causal unless there is a ``window``.
        :param window: with a mask, the number of keys that a query sees to the left and right of its position, -1 for
            all.
        :param scale: by default 1/sqrt(hdim).
        :param bias: added to the scores, (batch, heads, queries, keys), in group mode (heads, total, max_seqlen_k);
            extents of 1 before the keys are broadcast. Alternatively ``alibi_slopes``: fp32 (heads,) or (batch, heads).
        :param soft_cap: scores become cap * tanh(score / cap); 0 for no cap.
        :param sinks: fp32 (heads,): one score without a value per head.
        :param dropout_p: fraction of the probabilities to drop, determined by ``seed`` and ``offset`` (64 bits);
            ``random_bytes``, int8 (batch, heads, queries, keys), receives the bytes that decided.
        :param cu_seqlens_q: int32 (batch + 1): first rows of the requests in q, from 0 to the total; ``cu_seqlens_k``
            likewise for k and v. Requires ``max_seqlen_q`` and ``max_seqlen_k``.
        :param seqlens_k: int32 (batch): number of valid keys of each request.
        :param min_seqlen_q: with ``cu_seqlens_q``: requests with fewer queries are skipped, and their rows of ``out``
            (and of LSE), which must be given, stay unchanged.
        :param descale: fp32 scale factors of 8-bit Q, K and V; ``qscale`` is their granularity: ``"per_tensor"`` or
            ``"block_scale"``, with blocks of ``scale_blocks`` queries and keys. ``scale_o`` (one number) multiplies O
            before it is rounded to 8 bits, and ``dtype`` is O's dtype if it differs from Q's.
        :param num_splits: number of parts of the keys, computed separately and then combined; 0 lets the dispatcher
            choose.
        :param layout: ``"bshd"``, or ``"bhsd"`` with heads before rows.
        :param stream: as for :meth:`Dispatcher.gemm`.
        :param own_workspace: whether the launch gets its own workspace instead of memory shared between launches. A
            CUDA graph that captures the call needs it; with torch tensors a capture always has it.
        :returns: O, or ``(O, LSE)``.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises ProblemError: for features that exclude each other.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if a kernel or its runtime fails.
        """
        options = AttentionOptions(
            "forward", layout, None, mask, pair(window), scale, soft_cap, dropout_p, wants(lse), max_seqlen_q,
            max_seqlen_k, min_seqlen_q, alibi_slopes is not None, dtype, "none" if descale is None else qscale,
            scale_blocks, num_splits,
        )  # fmt: skip
        operands = {
            "q": q, "k": k, "v": v, "o": out, "lse": given_array(lse), "sinks": sinks,
            "bias": _one_bias(bias, alibi_slopes), "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k,
            "seqlens_k": seqlens_k, "random_bytes": random_bytes, "scale_o": scale_o, **descales(descale),
        }  # fmt: skip
        outputs = self._attention.run(operands, options, stream, seed, offset, own_workspace)
        return results(outputs, options)

    def attention_backward(
        self,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        dout: Any,
        lse: Any,
        *,
        dq: Any = None,
        dk: Any = None,
        dv: Any = None,
        dbias: Any = False,
        mask: AttentionMask = "none",
        window: Window = None,
        scale: float | None = None,
        bias: Any = None,
        alibi_slopes: Any = None,
        soft_cap: float = 0.0,
        dropout_p: float = 0.0,
        seed: int = 0,
        offset: int = 0,
        cu_seqlens_q: Any = None,
        cu_seqlens_k: Any = None,
        max_seqlen_q: int | None = None,
        max_seqlen_k: int | None = None,
        seqlens_k: Any = None,
        deterministic: bool = False,
        layout: AttentionLayout = "bshd",
        stream: int | None = None,
        own_workspace: bool = False,
    ) -> tuple[Any, ...]:
        """Gradients of :meth:`attention`, which made ``out`` and ``lse`` with the same options.

        :param dout: the gradient of O.
        :param dq: dQ, allocated when not given, like ``dk`` and ``dv``; results share memory with no other operand.
            ``dbias``: True, or an array (batch, heads, queries, keys), for the gradient of an elementwise bias before
            summation over broadcast dimensions; 0 where a query does not see a key.
        :param deterministic: whether all sums have a fixed order, so that equal calls give bitwise equal results.
        :returns: ``(dq, dk, dv)``, followed by ``dbias`` if it was requested.

        Sinks take part through LSE. Everything else is as for :meth:`attention`.
        """
        options = AttentionOptions(
            "backward", layout, None, mask, pair(window), scale, soft_cap, dropout_p, False, max_seqlen_q,
            max_seqlen_k, alibi=alibi_slopes is not None, dbias=wants(dbias), deterministic=deterministic,
        )  # fmt: skip
        operands = {
            "q": q, "k": k, "v": v, "o": out, "do": dout, "lse": lse, "bias": _one_bias(bias, alibi_slopes),
            "cu_seqlens_q": cu_seqlens_q, "cu_seqlens_k": cu_seqlens_k, "seqlens_k": seqlens_k, "dq": dq, "dk": dk,
            "dv": dv, "dbias": given_array(dbias),
        }  # fmt: skip
        gradients = self._attention.run(operands, options, stream, seed, offset, own_workspace)
        return tuple(gradients[name] for name in ("dq", "dk", "dv", *(("dbias",) if options.dbias else ())))

    def decode(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        seqlens_k: Any = None,
        out: Any = None,
        *,
        page_table: Any = None,
        page_indptr: Any = None,
        last_page_lengths: Any = None,
        max_seqlen_k: int | None = None,
        lse: Any = False,
        window: Window = None,
        scale: float | None = None,
        alibi_slopes: Any = None,
        soft_cap: float = 0.0,
        sinks: Any = None,
        descale: tuple[Any, Any, Any] | None = None,
        qscale: QScale = "per_tensor",
        scale_o: Any = None,
        dtype: str = "",
        num_splits: int = 0,
        layout: AttentionLayout = "bshd",
        cache_layout: AttentionLayout | None = None,
        stream: int | None = None,
        own_workspace: bool = False,
    ) -> Any:
        """Compute attention of each request's last few queries with all keys of its cache.

        Query i of n is at position seqlens_k - n + i and sees the keys up to there, or those of its ``window``.

        :param q: (batch, queries, heads, hdim).
        :param k_cache: K (batch, capacity, kv_heads, hdim); with a page table (pages, page_size, kv_heads, hdim), or
            vectorized (pages, kv_heads, hdim / x, page_size, x), where x elements take 16 bytes.
        :param v_cache: V likewise; vectorized (pages, kv_heads, page_size / x, hdim_v, x).
        :param seqlens_k: int32 (batch): number of keys of each request.
        :param page_table: int32 (batch, pages of the longest request), as in vLLM; or, as in SGLang, a list of the
            pages of all requests with the offset of each request's first page in it, ``page_indptr`` (batch + 1), and
            the number of keys in each request's last page, ``last_page_lengths`` (batch), all int32, in place of
            ``seqlens_k``. On a CPU a list shorter than ``page_indptr`` states is refused; on a GPU it is read beyond
            its end.
        :param max_seqlen_k: keys of the longest request; by default the capacity of the cache or the page table.
        :param cache_layout: ``"bshd"`` or ``"bhsd"``, the order of the caches; by default that of q.
        :param descale: as for :meth:`attention`; with ``qscale="kv_block_scale"`` and pages, one factor for Q, and one
            for each page and head of K and V, fp32 (pages, kv_heads).

        Everything else is as for :meth:`attention`.
        """
        mask, window = last_keys(q, layout, window)
        options = AttentionOptions(
            "forward", layout, cache_layout, mask, window, scale, soft_cap, lse=wants(lse), max_seqlen_k=max_seqlen_k,
            alibi=alibi_slopes is not None, dtype=dtype, qscale="none" if descale is None else qscale,
            num_splits=num_splits,
        )  # fmt: skip
        operands = {
            "q": q, "k": k_cache, "v": v_cache, "o": out, "lse": given_array(lse), "sinks": sinks,
            "bias": alibi_slopes, "seqlens_k": seqlens_k, "page_table": page_table, "page_indptr": page_indptr,
            "last_page_lengths": last_page_lengths, "scale_o": scale_o, **descales(descale),
        }  # fmt: skip
        return results(self._attention.run(operands, options, stream, own_workspace=own_workspace), options)

    def prefill(
        self,
        q: Any,
        k_cache: Any,
        v_cache: Any,
        cu_seqlens_q: Any,
        max_seqlen_q: int,
        seqlens_k: Any = None,
        out: Any = None,
        *,
        page_table: Any,
        page_indptr: Any = None,
        last_page_lengths: Any = None,
        max_seqlen_k: int | None = None,
        lse: Any = False,
        mask: AttentionMask = "bottom_right",
        window: Window = None,
        scale: float | None = None,
        alibi_slopes: Any = None,
        soft_cap: float = 0.0,
        sinks: Any = None,
        descale: tuple[Any, Any, Any] | None = None,
        qscale: QScale = "per_tensor",
        scale_o: Any = None,
        dtype: str = "",
        layout: AttentionLayout = "bshd",
        cache_layout: AttentionLayout | None = None,
        stream: int | None = None,
        own_workspace: bool = False,
    ) -> Any:
        """Compute attention of ragged requests with paged keys; by default causal: the last query is at the last key.

        :param q: (total, heads, hdim): the queries of all requests, concatenated.
        :param cu_seqlens_q: int32 (batch + 1): first rows of the requests in q; ``max_seqlen_q`` is the length of the
            longest one.
        :param page_table: as for :meth:`decode`, with ``seqlens_k``, or ``page_indptr`` and ``last_page_lengths``.

        Everything else is as for :meth:`decode` and :meth:`attention`.
        """
        if page_table is None or cu_seqlens_q is None:
            missing = "page_table" if page_table is None else "cu_seqlens_q"
            raise ArrayError(f"{missing} is missing; without it call attention() or decode()")
        options = AttentionOptions(
            "forward", layout, cache_layout, mask, pair(window), scale, soft_cap, lse=wants(lse),
            max_seqlen_q=max_seqlen_q, max_seqlen_k=max_seqlen_k, alibi=alibi_slopes is not None, dtype=dtype,
            qscale="none" if descale is None else qscale,
        )  # fmt: skip
        operands = {
            "q": q, "k": k_cache, "v": v_cache, "o": out, "lse": given_array(lse), "sinks": sinks,
            "bias": alibi_slopes, "cu_seqlens_q": cu_seqlens_q, "seqlens_k": seqlens_k, "page_table": page_table,
            "page_indptr": page_indptr, "last_page_lengths": last_page_lengths, "scale_o": scale_o,
            **descales(descale),
        }  # fmt: skip
        return results(self._attention.run(operands, options, stream, own_workspace=own_workspace), options)

    def append_kv(
        self,
        k: Any,
        v: Any,
        k_cache: Any,
        v_cache: Any,
        seqlens_k: Any,
        *,
        q: Any = None,
        q_out: Any = None,
        cos: Any = None,
        sin: Any = None,
        interleaved: bool = False,
        page_table: Any = None,
        layout: AttentionLayout = "bshd",
        cache_layout: AttentionLayout | None = None,
        stream: int | None = None,
        own_workspace: bool = False,
    ) -> Any:
        """Append new rows of K and V to the caches, with rotary embedding of K and Q if requested.

        :param k: new rows (batch, new, kv_heads, hdim); ``v`` likewise.
        :param k_cache: as in :meth:`decode`, written; ``v_cache`` likewise. There must be room.
        :param seqlens_k: int32 (batch): rows that the cache holds before the append; not changed.
        :param q: (batch, queries, heads, hdim), rotated with row i at position seqlens_k + i; ``q_out``, allocated when
            not given, may be ``q`` itself.
        :param cos: (positions, rotary_dim / 2), and ``sin`` likewise.
        :param interleaved: whether adjacent elements are rotated together, instead of elements rotary_dim / 2 apart.
        :param page_table: int32 (batch, pages), as in vLLM.
        :returns: the rotated q, or None.
        :raises ArrayError: for arrays that do not fit together or cannot be addressed.
        :raises NoKernelError: if no kernel serves the problem.
        :raises LaunchError: if the kernel or its runtime fails.
        """
        if (cos is None) != (sin is None) or (q is not None and cos is None):
            raise ArrayError("cos and sin belong together, and q needs them; pass both, or neither and no q")
        operands = {
            "q": q, "k": k, "v": v, "seqlens_k": seqlens_k, "page_table": page_table, "cos": cos, "sin": sin,
            "q_out": q_out, "k_cache": k_cache, "v_cache": v_cache,
        }  # fmt: skip
        options = AppendOptions("append", layout, cache_layout, interleaved)
        return self._attention.run(operands, options, stream, own_workspace=own_workspace)["q_out"]


def _one_bias(bias: Any, slopes: Any) -> Any:
    if bias is not None and slopes is not None:
        raise ArrayError("both bias and alibi_slopes are given; pass one of them")
    return bias if slopes is None else slopes
