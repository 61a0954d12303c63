"""Where a kernel finds its operands: where they were made, or copied to a GPU with their guards and back."""

from __future__ import annotations

import importlib
from typing import Any, Protocol

import numpy as np

from gemm.correctness.guarded import Block


class Memory(Protocol):
    """The memory of a device."""

    def put(self, block: Block) -> int:
        """The address at which the device finds the block's first element."""

    def get(self, block: Block) -> None:
        """Bring what the device made of it back into the block."""


class Host:
    """Memory of the CPU and of simulated devices."""

    def put(self, block: Block) -> int:
        """Where it is."""
        return block.address

    def get(self, block: Block) -> None:
        """Nothing to do."""


class Torch:
    """Memory of a GPU, through torch: blocks are copied whole, guards too."""

    def __init__(self, device: str = "cuda:0") -> None:
        self._torch: Any = importlib.import_module("torch")
        self._device = device
        self._places: dict[int, tuple[Any, Any]] = {}

    def put(self, block: Block) -> int:
        """Copy it; the first element is as aligned as on the host."""
        room = self._torch.empty(block.raw.nbytes + 256, dtype=self._torch.uint8, device=self._device)
        shift = -(room.data_ptr() + block.offset) % 256
        place = room[shift : shift + block.raw.nbytes]
        place.copy_(self._torch.from_numpy(block.raw))
        self._places[id(block)] = block, place  # the block too, so that its id is not given again
        return int(place.data_ptr() + block.offset)

    def get(self, block: Block) -> None:
        """Wait for the device and copy back."""
        self._torch.cuda.synchronize(self._device)
        block.raw[...] = np.asarray(self._places[id(block)][1].cpu())
