"""Shared test code of attention: strategies that draw specs."""
