"""Mock libraries in use, and references for a product and its gradients."""
