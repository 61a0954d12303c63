"""Tables of measurements: CSV, JUnit."""
