"""What tests of attention share: strategies that draw specs."""
