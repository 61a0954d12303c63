"""What users and build tools see: the command line, JSON requests and their responses, and data for the plugin."""
