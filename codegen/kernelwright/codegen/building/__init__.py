"""Runs compile plans on this machine: processes, content-addressed results, locks, memory."""
