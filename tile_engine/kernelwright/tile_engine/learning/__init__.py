"""Trains and evaluates learned selectors on tables of the engine."""
