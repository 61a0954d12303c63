"""Grouped convolution: specs, names, rules, rule sets and templates of forward, backward data and backward weight."""
