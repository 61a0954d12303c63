"""Runs compile plans on this machine: processes, results by content, locks, memory."""
