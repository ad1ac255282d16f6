"""Two files compared by what they are: models, saved tensors, JSON, tactics, folders, bytes."""
