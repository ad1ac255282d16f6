"""What is in a model, for people and for machines."""
