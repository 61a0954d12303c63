"""What operations whose kernels are tiled GEMMs do alike: answers to the registry, and sections of architectures."""
