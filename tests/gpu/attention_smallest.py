"""Some small launches of every attention kernel: what compute-sanitizer is run on.

``compute-sanitizer --tool memcheck python3 tests/gpu/attention_smallest.py LIBATTENTION.so``.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))


def main() -> int:
    """Launch; the exit status is that of the command line."""
    os.environ["KERNELWRIGHT_GPU_ATTENTION"] = sys.argv[1]
    import attention_gpu_test as tests
    from attention_cases import compare

    for kernel in tests.FWD:
        served = tests.cases_of(kernel)
        for case in (served[0], served[len(served) // 2], served[-1]):
            compare(case, kernel.dtype, tests.launched(kernel, case, 1))
        print(kernel.name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
