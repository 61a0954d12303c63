"""Tables of what was measured: CSV, JUnit."""
