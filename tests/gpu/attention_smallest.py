"""Some small launches of every attention kernel: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/attention_smallest.py LIBATTENTION.so [PART …]``: of the kernels
whose names hold one of the parts, by default of all.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))


def launches() -> Iterator[tuple[Any, Callable[[], object]]]:
    """Kernels, and what launches each of them."""
    import attention_backward_gpu_test as backward
    import attention_cache_gpu_test as caches
    import attention_gpu_test as tests
    from attention_cases import Case, compare

    # Several tiles of queries and keys, and a request without queries.
    small = Case((5, 0, 150, 1), (7, 9, 300, 200), heads=(4, 2), group=True)

    def ragged(case: Any) -> Any:
        features = {name: getattr(case, name) for name in ("mask", "window", "soft_cap", "sink", "bias")}
        return replace(small, **features)

    def forward(kernel: Any) -> None:
        served = tests.cases_of(kernel)
        for case in (served[0], ragged(served[-1])):
            compare(case, kernel.dtype, tests.launched(kernel, case, 1))

    def cached(kernel: Any) -> None:
        for seed in range(4):
            case, form, size, heads_first = caches.drawn(kernel, seed, 5)
            splits = 3 if kernel in caches.SPLIT else 1
            caches.attend(kernel, replace(case, sink=False), seed, form, size, heads_first, splits)

    def gradients(kernel: Any) -> None:
        served = backward.cases_of(kernel)
        batch = replace(served[0], queries=(200, 200), keys=(300, 300), heads=(4, 2))
        for case in (batch, ragged(served[-1])) if kernel.traits.groups & 2 else (batch,):
            backward.computed(kernel, case, 0)

    for kernel in tests.FWD:
        yield kernel, lambda kernel=kernel: forward(kernel)
    for kernel in (*caches.SPLIT, *caches.PREFILL):
        yield kernel, lambda kernel=kernel: cached(kernel)
    for kernel in caches.APPEND:
        rope = kernel.traits.ropes.bit_length() - 1
        yield kernel, lambda kernel=kernel, rope=rope: caches.test_append_is_right(kernel, caches.BLOCK, (48, 64), rope)
    for kernel in backward.BACKWARD:
        yield kernel, lambda kernel=kernel: gradients(kernel)


def main() -> int:
    """Launch; the exit status is that of the command line."""
    os.environ["KERNELWRIGHT_GPU_ATTENTION"] = sys.argv[1]
    parts = sys.argv[2:] or [""]
    for kernel, launch in launches():
        if any(part in kernel.name for part in parts):
            launch()
            print(kernel.name, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
