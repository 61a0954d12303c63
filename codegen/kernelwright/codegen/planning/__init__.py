"""From kernels to a compile plan: rendered files and the actions that make a library of them."""
