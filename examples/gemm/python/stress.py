"""Threads share one dispatcher: stress.py [--library DIR] [--threads 16] [--rounds 20].

Every thread plans problems of many sizes and compares each result with the exact one; whole numbers leave no room for
rounding. Plans are made while others run, and the same plans are used by several threads at once.
"""

from __future__ import annotations

import sys
import threading

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> int:
    """Run the threads; 1 if a result was wrong or a thread failed."""
    parser = example_parser(__doc__)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))
    done: list[int] = []
    wrong: list[str] = []

    def work(thread: int) -> None:
        rng = np.random.default_rng(thread)
        try:
            for _ in range(options.rounds):
                m, n, k = (int(extent) for extent in rng.integers(0, 70, 3))
                a = rng.integers(-3, 4, (m, k)).astype(np.float32)
                b = rng.integers(-3, 4, (k, n)).astype(np.float32)
                if not np.array_equal(dispatcher.gemm(a, b), a.astype(np.int64) @ b.astype(np.int64)):
                    wrong.append(f"{m}x{n}x{k} in thread {thread}")
                done.append(1)
        except Exception as error:  # a thread's failure must reach the exit status
            wrong.append(f"thread {thread}: {error!r}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(done)} of {options.threads * options.rounds} products, {len(wrong)} wrong", *wrong[:5], sep="\n")
    return 0 if not wrong and len(done) == options.threads * options.rounds else 1


if __name__ == "__main__":
    sys.exit(main())
