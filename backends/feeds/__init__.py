"""Feed dicts: their sources, fitting them to a model, and writing them."""
