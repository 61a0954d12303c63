"""Which GEMM problems a kernel serves: rules that Python calls, and dispatcher and launchers as generated C."""
