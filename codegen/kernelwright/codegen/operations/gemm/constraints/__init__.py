"""What makes a GEMM spec illegal: rules that hold everywhere, and those of each backend."""
