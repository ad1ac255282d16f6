"""Scripts that repro bundles are given: nothing of this tool imports them, and they import nothing of it."""
