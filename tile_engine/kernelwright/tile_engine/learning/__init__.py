"""Train and evaluate learned selectors on tables of the engine."""
