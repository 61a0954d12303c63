"""What a dispatcher holds and why it chooses, as JSON: export_json.py [--library DIR] [--output FILE].

The document has every kernel with its spec and identity, and the ranking for one problem.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary


def main(arguments: list[str] | None = None) -> None:
    """Write one JSON document to a file or to standard output."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    if options.library:
        library = KernelLibrary.load_for("cpu", options.library)
    else:
        library = KernelLibrary.load_installed("cpu", "gemm")
    dispatcher = Dispatcher(library)

    problem = GemmProblem(256, 256, 256, dtype="fp32", layout="rrr")
    document = {
        "registry": json.loads(dispatcher.export_json()),
        "explanation": dataclasses.asdict(dispatcher.explain(problem)),
    }
    text = json.dumps(document, indent=1)
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
