"""What no kernel serves runs torch's own operator: decided once per kind of problem, counted, logged once."""
