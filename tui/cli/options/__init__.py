"""Options that commands share, with Polygraphy's names."""
