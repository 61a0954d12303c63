"""From kernels to a compile plan: rendered files, and the actions that turn them into a library."""
