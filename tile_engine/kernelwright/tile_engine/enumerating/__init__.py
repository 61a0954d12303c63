"""Which kernels a trait configuration of the tile engine describes."""
