"""Dumps of other programs: folders and archives of tensors, read as results."""
