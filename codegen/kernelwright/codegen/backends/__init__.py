"""The three families of kernels (CK Tile, CUTLASS, CPU): the actions of a kernel and of a library for each."""
