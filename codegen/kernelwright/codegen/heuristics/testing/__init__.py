"""Models of random trees."""
