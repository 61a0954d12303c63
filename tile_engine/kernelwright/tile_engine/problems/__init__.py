"""Problems to measure kernels on: derived from models, or read from a user's file."""
