"""A matrix: models × sides × feeds × actions, each cell a job in a process of its own."""
