"""Builds that Ninja drives: its file, and what its edges run beside the plan's commands."""
