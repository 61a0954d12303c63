"""Some small launches of every attention kernel: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/attention_smallest.py LIBATTENTION.so``.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    """Launch; the exit status is that of the command line."""
    os.environ["KERNELWRIGHT_GPU_ATTENTION"] = sys.argv[1]
    import attention_backward_gpu_test as backward
    import attention_cache_gpu_test as caches
    import attention_gpu_test as tests
    from attention_cases import compare

    for kernel in tests.FWD:
        served = tests.cases_of(kernel)
        for case in (served[0], served[len(served) // 2], served[-1]):
            compare(case, kernel.dtype, tests.launched(kernel, case, 1))
        print(kernel.name)
    for kernel in (*caches.SPLIT, *caches.PREFILL):
        for seed in range(4):
            case, form, size, heads_first = caches.drawn(kernel, seed, 5)
            splits = 3 if kernel in caches.SPLIT else 1
            caches.attend(kernel, replace(case, sink=False), seed, form, size, heads_first, splits)
        print(kernel.name)
    for kernel in caches.APPEND:
        caches.test_append_is_right(kernel, caches.BLOCK)
        print(kernel.name)
    for kernel in backward.BACKWARD:
        backward.computed(kernel, backward.cases_of(kernel)[-1], 0)
        print(kernel.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
