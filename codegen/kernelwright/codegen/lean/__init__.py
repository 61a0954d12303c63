"""Third-party headers, rewritten where compilers would instantiate recursively what arithmetic can compute."""
