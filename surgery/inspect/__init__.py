"""`inspect model`: the contents of a model, as text and as JSON."""
