"""Models without their weights as values that never change, and views of their graphs."""
