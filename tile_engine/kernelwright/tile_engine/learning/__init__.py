"""Trains and judges learned selectors on tables of the engine."""
