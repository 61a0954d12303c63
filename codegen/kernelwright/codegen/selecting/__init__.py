"""Which kernels are meant: specs, configurations, sets, filters, and whether kernels are legal."""
