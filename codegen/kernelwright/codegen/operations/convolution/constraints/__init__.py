"""What makes a convolution spec illegal: rules that hold everywhere, and those of each backend."""
