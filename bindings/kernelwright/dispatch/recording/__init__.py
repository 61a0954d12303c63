"""Record the problems that a program poses, with counts, so that libraries can be built for them."""
