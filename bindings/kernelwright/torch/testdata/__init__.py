"""Mock libraries in use, and what a product and its gradients must be."""
