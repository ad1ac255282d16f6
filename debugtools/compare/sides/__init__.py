"""The sides of a comparison: their models, runners, marked tensors and feeds, and how each gives its tensors."""
