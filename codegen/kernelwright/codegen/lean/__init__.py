"""Headers of others, rewritten where they make compilers instantiate by recursion what arithmetic gives."""
