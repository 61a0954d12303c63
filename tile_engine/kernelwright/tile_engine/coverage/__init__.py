"""Which operations of public models the kernels of libraries serve, found by planning alone."""
