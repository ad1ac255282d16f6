"""Models cleaned up, in one go."""
