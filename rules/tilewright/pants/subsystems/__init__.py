"""Options of the plugin."""
