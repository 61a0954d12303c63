"""Builds driven by Ninja: the build file, and what its edges run besides the plan's commands."""
