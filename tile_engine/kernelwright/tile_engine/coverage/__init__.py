"""Which operations of public models the kernels of libraries serve, determined by planning alone."""
