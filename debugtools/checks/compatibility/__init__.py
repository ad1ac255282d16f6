"""Which backends take a model, operator by operator."""
