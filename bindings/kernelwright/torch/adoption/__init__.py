"""Make existing models run kernels: their layers are given other classes, or calls of ATen are intercepted."""
