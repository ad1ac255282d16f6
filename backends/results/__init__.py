"""Results of inference and of comparisons: their values, and how they are read and written."""
