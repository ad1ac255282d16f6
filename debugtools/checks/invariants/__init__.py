"""Relations that a model must obey whatever its weights are, checked by running it alone."""
