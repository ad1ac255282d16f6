"""Feed dicts: where they come from, how they are made to fit, and how they are written."""
