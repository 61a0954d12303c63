/* Clang includes this name in CUDA mode: templates for textures, which no kernel reads. */
