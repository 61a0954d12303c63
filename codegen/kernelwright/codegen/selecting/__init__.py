"""Selection of kernels: specs, configurations, sets, filters, and whether kernels are legal."""
