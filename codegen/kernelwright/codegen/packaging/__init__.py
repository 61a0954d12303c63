"""Manifests, provenance, wheels, and their verification."""
