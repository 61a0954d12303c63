"""The Pants plugin: targets, rules and goals that turn kernels into libraries."""
