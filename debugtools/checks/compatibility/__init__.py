"""Which backends support a model, operator by operator."""
