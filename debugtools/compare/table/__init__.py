"""From pairs of tensors to the rows of the layer table, the outcome, and the files of results."""
