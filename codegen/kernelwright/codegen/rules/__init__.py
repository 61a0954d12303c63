"""What makes a spec illegal: common rules, and those of each backend."""
