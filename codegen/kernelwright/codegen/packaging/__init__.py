"""Manifests, provenance and wheels, and their verification."""
