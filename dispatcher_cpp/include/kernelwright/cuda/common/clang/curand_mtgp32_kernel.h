/* Clang includes this name in CUDA mode; the CUDA 13 wheels do not carry it and nothing here needs it. */
