"""`bench`: times runners alternately and layer by layer, and writes the results."""
