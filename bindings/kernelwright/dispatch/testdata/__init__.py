"""Mock kernel libraries for the tests of this package."""
