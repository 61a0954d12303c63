"""Compilers and linkers as typed inputs of every command."""
