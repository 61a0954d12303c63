"""Many sizes with one dispatcher: many_sizes.py [--library DIR].

Each new problem is planned once (a kernel is chosen, its parameters are computed); a plan that is kept can be called
without looking anything up. DIR holds <arch>/manifest.json; left out, an installed wheel is used.
"""

from __future__ import annotations

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem

SIZES = [(1, 512, 512), (7, 64, 300), (64, 64, 64), (129, 257, 65), (300, 1, 200), (0, 16, 16), (512, 512, 33)]


def main(arguments: list[str] | None = None) -> None:
    """Run all sizes in three dtypes' worth of plans and compare sums of small integers exactly."""
    options = example_parser(__doc__).parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    rng = np.random.default_rng(0)
    for dtype, kind in (("fp32", np.float32), ("fp16", np.float16)):
        for m, n, k in SIZES:
            plan = dispatcher.plan(GemmProblem(m, n, k, dtype=dtype, layout="rrr"))
            a, b = rng.integers(-2, 3, (m, k)).astype(kind), rng.integers(-2, 3, (k, n)).astype(kind)
            out = np.empty((m, n), kind)
            plan(a, b, out=out)
            exact = a.astype(np.int64) @ b.astype(np.int64)
            assert np.array_equal(out.astype(np.int64), exact), (m, n, k, dtype)
            print(f"{dtype} {m:>4} x {n:>4} x {k:>4}  {plan.kernel.name}")
    print(f"{2 * len(SIZES)} problems, all exact")


if __name__ == "__main__":
    main()
