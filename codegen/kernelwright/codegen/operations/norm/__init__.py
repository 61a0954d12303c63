"""RMS norm and layer norm: specs, rules, sets and templates."""
