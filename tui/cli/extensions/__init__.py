"""Extension modules of `run`, as Polygraphy has them: found by entry points, their options added, their runners run."""
