"""From some tensors to others: a part of a model as a model."""
