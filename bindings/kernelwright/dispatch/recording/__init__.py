"""Records the problems that a program poses, with counts, for libraries that are built for them."""
