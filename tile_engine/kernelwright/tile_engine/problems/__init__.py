"""Problems to measure kernels on: derived from models, or read from a file of the user's."""
