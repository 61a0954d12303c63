"""Kernels that the rewritten headers make other code of: they are compiled with the headers as they are.

Rewritten headers give a compiler less to optimise, and where it decides by how much it has seen, it may schedule a
kernel otherwise. Both results are right; users get what the wheel's own headers give. ``tests/gemm/lean`` finds such
kernels.
"""

from __future__ import annotations

UNEQUAL: dict[str, str] = {
    "647da4db62e7ae9608cc9bb6500321ec6e6efc5086c76009efb1cd5360ee7d6a": (
        "gfx942 fmha_bwd_dq_dk_dv_bf16_batch_h128x128_bwd_bb16x128x128x16x128x16x32x128x128_r1x4x1x4x1x1x1x4x1_"
        "w16x16x32x16x16x16x16x16x32_psskddv_mask_o1_aq1_av1"
    ),
}
"""Architecture and name by identity."""
