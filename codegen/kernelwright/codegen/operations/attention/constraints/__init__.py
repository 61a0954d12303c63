"""What makes an attention kernel illegal."""
