"""Edits of FlashInfer's headers: keywords that clang requires, and the number of tiles that the diagonal masks.

The loop masks as many tiles of keys as the diagonal of a workgroup crosses. Where each group of 64 rows begins at its
own diagonal (``forward.hpp``), there are fewer.

Each edited file states this at its top. It includes its neighbours by full path, as it does not lie beside them.
"""

from __future__ import annotations

from kernelwright.codegen.lean.rewrite import Header, Swap

FOLDER = "flashinfer/data/"
_ROOT = f"{FOLDER}include/flashinfer"


def _edited(guard: str) -> Swap:
    """Insert the note that the licence asks for after the header's guard."""
    return Swap(f"#define {guard}\n", f"#define {guard}\n// Changed by kernelwright, which edits it as it builds.\n")


HEADERS = (
    Header(
        f"{_ROOT}/attention/hopper/mainloop_mma.cuh",
        "4fd32d618510c43c190d49614ff71e943b612c04b2736cdeea9fb5686d5fe1fc",
        (
            _edited("FLASHINFER_ATTENTION_HOPPER_MAINLOOP_MMA_CUH_"),
            Swap('"variants.cuh"', '"flashinfer/attention/hopper/variants.cuh"'),
            Swap("attention_updater.update<", "attention_updater.template update<", times=4),
            Swap(
                "(CAUSAL ? cute::ceil_div(CTA_Q, CTA_KV) : 0)",
                "(CAUSAL ? cute::ceil_div(Ktraits::rows_at_diagonal, CTA_KV) : 0)",
            ),
        ),
    ),
)
"""Every edited header."""
