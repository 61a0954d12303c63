"""Whole models as a user writes them: as they are, and after ``kernelwright.torch.adopt``, in turns.

    python benchmarks/models/run.py --libraries FOLDER… --device cuda:0 --out result.json

Each model runs in a process of its own, of which a failure or a hang costs that model alone. Outputs are compared with
the same model in fp32: a mode whose error is more than twice torch's has no ratio. Ratios are torch's time ÷ ours,
taken within a round; of compiled calls against the faster of torch's compiled and eager ones. ``--libraries`` are what
KernelLibrary.load_for takes; KERNELWRIGHT_LIBRARY names libkernelwright.so unless it is installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from results_file import text

_HERE = Path(__file__).parent


def main() -> int:
    """Measure every model and write the results after each. Returns 1 if a model failed or an output was off."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--libraries", nargs="+", required=True)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--models", nargs="*", default=[], help="words of names; every model unless given")
    parser.add_argument("--works", nargs="*", default=[], help="kinds of works; every one unless given")
    parser.add_argument("--modes", nargs="+", default=["eager", "graph"])
    parser.add_argument("--small", action="store_true", help="widths and works for processors")
    parser.add_argument("--threads", type=int, default=0, help="of both sides, on processors; all unless given")
    parser.add_argument("--prepack", action="store_true", help="weights of ours are packed once, on processors")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1e9, help="no model starts after so many")
    parser.add_argument("--each", type=float, default=150, help="seconds that one model may take")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return _measure_one(given)
    from figures import tables
    from zoo import MODELS

    chosen = [name for name in MODELS if not given.models or any(word in name for word in given.models)]
    start, failed = time.monotonic(), False
    rows: list[dict[str, Any]] = []
    about: dict[str, Any] = {}
    for name in chosen:
        if time.monotonic() - start > given.seconds:
            rows.append({"model": name, "state": "no time left"})
            continue
        command = [sys.executable, str(_HERE / "run.py"), *sys.argv[1:], "--one", name]
        try:
            child = subprocess.run(command, stdout=subprocess.PIPE, timeout=given.each, text=True)
            lines, code = child.stdout, child.returncode
        except subprocess.TimeoutExpired as expired:
            lines, code = (expired.stdout or b"").decode(), "timeout"
        records = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
        about = next((row["about"] for row in records if "about" in row), about)
        rows += [row for row in records if "about" not in row]
        rows += [] if code == 0 else [{"model": name, "state": f"ended with {code}"}]
        failed |= code != 0
        given.out.write_text(text({**about, "rounds": given.rounds, "dtype": given.dtype}, rows))
    print(tables(rows), file=sys.stderr)
    return int(failed or any(row.get("state") == "unequal" for row in rows))


def _measure_one(given: argparse.Namespace) -> int:
    import machine
    import torch
    import transformers
    from one import measure
    from zoo import MODELS, small

    import kernelwright.torch as ours
    from kernelwright.dispatch import Dispatcher, KernelLibrary

    torch.manual_seed(0)
    libraries = [KernelLibrary.load_for(given.device, one) for one in given.libraries]
    dispatcher = Dispatcher(libraries, device=given.device)
    if given.threads:
        torch.set_num_threads(given.threads)
        dispatcher.set_num_threads(given.threads)
    ours.use(dispatcher)
    if given.prepack:
        ours.prepack()
    name = torch.cuda.get_device_name() if given.device != "cpu" else machine.describe()["processor"]
    about = {
        "date": time.strftime("%Y-%m-%d"), "device": name, "threads": torch.get_num_threads(),
        "torch": torch.__version__, "prepack": ours.prepacked().limit,
        "transformers": transformers.__version__, "road": ours.report().road,
        "kernels": {one.manifest.name: len(one.kernels) for one in libraries},
        "toolchains": {one.manifest.name: dict(one.manifest.toolchains) for one in libraries},
    }  # fmt: skip
    print(json.dumps({"about": about}, default=dict), flush=True)
    model = MODELS[given.one]
    for row in measure(small(model) if given.small else model, given):
        print(json.dumps({"model": given.one, **row}), flush=True)
        shown = row.get("ratio", {}).get("median") or row.get("state")
        print(f"{given.one}: {row['work']} {row['mode']}: {shown}", file=sys.stderr, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
