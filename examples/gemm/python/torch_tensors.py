"""Tensors of torch, on the CPU or on a GPU: torch_tensors.py [--library DIR] [--device cuda:0].

Tensors are read and written where they are; on a GPU the launch is asynchronous, on torch's current stream.
"""

from __future__ import annotations

import torch  # pants: no-infer-dep
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher


def main(arguments: list[str] | None = None) -> None:
    """Multiply bf16 tensors and compare with torch."""
    parser = example_parser(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu, cuda:N, or hip:N, which torch calls cuda:N too")
    options = parser.parse_args(arguments)
    library = open_library(options, options.device)
    dispatcher = Dispatcher(library, device=options.device)

    where = options.device.replace("hip", "cuda")
    torch.manual_seed(0)
    x = torch.randn(200, 512, dtype=torch.bfloat16, device=where)
    weight = torch.randn(256, 512, dtype=torch.bfloat16, device=where)  # as torch.nn.Linear keeps it
    y = dispatcher.gemm(x, weight.t())  # a view: column-major B
    torch.testing.assert_close(y.float(), x.float() @ weight.float().t(), rtol=2e-2, atol=2e-1)

    out = torch.empty_like(y)
    dispatcher.gemm(x, weight.t(), out=out)  # into memory that is there already
    assert torch.equal(out, y)
    print(f"{tuple(y.shape)} {y.dtype} on {y.device}, close to torch's result")


if __name__ == "__main__":
    main()
