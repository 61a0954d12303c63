"""How much of the best measured speed the dispatcher's choice of splits reaches on the table of ``measure.py``.

The dispatcher predicts, and its formula has constants that were fitted to that table; here its choices are looked up in
it. Choices that the table lacks are named and not counted.
Run ``python benchmarks/attention/selected.py --library FOLDER --table tuning.json``; it needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

from kernelwright.dispatch import AttentionProblem, Device, Dispatcher, KernelLibrary


def main() -> None:
    """Print a line for each shape, and the mean and minimum fraction."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True, help="folder of a library and its manifest")
    parser.add_argument("--table", type=Path, required=True)
    options = parser.parse_args()
    device = Device("cuda:0", arch="sm_90a")
    dispatcher = Dispatcher([KernelLibrary.load(options.library)], device=device)
    shares = []
    for line in json.loads(options.table.read_text())["decode"]:
        batch, hq, hk, keys, hdim = line["shape"]
        problem = AttentionProblem("forward", batch, hq, hk, 1, keys, hdim, dtype="bf16")
        splits = int(dispatcher.plan(problem).choices.partition("num_splits=")[2] or 1)
        times = {int(each): ms for each, ms in line["ms"].items()}
        best = min(times, key=lambda each: times[each])
        share = times[best] / times[splits] if splits in times else None
        said = "not measured" if share is None else f"reached {share:.3f}"
        print(f"{batch:3} x {keys:6} heads {hq}/{hk} d{hdim}: {splits:3} splits, best {best:3}, {said}")
        shares += [] if share is None else [share]
    print(f"mean {statistics.mean(shares):.3f}, least {min(shares):.3f}")


if __name__ == "__main__":
    main()
