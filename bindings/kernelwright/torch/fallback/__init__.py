"""Problems that no kernel serves run torch's own operator: decided once per kind of problem, counted, logged once."""
