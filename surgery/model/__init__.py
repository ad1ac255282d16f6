"""Models without their weights as immutable values, and views of their graphs."""
