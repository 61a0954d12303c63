"""What a dispatcher holds and why it chooses, as JSON: export_json.py [--library DIR] [--output FILE].

The document has every kernel with its spec and identity, and the ranking for one problem.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem


def main(arguments: list[str] | None = None) -> None:
    """Write one JSON document to a file or to standard output."""
    parser = example_parser(__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

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
