"""What a run on hardware measured of kernels, beside what was counted in their code."""
