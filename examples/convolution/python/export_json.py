"""What a dispatcher holds and why it chooses, as JSON: export_json.py [--library DIR] [--output FILE].

The document has every kernel with its spec and identity, and the ranking for one problem of each direction.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from shared import example_parser, open_library

from kernelwright.dispatch import ConvProblem, Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Write one JSON document to a file or to standard output."""
    parser = example_parser(__doc__)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args(arguments)
    dispatcher = Dispatcher(open_library(options))

    directions = ("forward", "backward_data", "backward_weight")
    problems = [ConvProblem(each, 8, 64, 64, (56, 56), 3, pad_left=1) for each in directions]
    document = {
        "registry": json.loads(dispatcher.export_json()),
        "explanations": {str(problem): dataclasses.asdict(dispatcher.explain(problem)) for problem in problems},
    }
    text = json.dumps(document, indent=1)
    if options.output:
        options.output.write_text(text)
    else:
        sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
