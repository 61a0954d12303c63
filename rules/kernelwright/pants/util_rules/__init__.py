"""Rules, one concern each."""
