"""A corpus of planted faults: realistic models, what is made wrong in them, and how well it is found."""
