"""Selection that measures the best few kernels of a problem once, and remembers the fastest one."""
