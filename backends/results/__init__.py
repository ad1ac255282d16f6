"""Results of inference and of comparisons: types, reading, writing."""
