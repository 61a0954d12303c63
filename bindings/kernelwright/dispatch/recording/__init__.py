"""Record the problems of a program, with counts, so that libraries can be built for them."""
