"""Models of others run kernels: their layers are given other classes, or calls of ATen are intercepted."""
