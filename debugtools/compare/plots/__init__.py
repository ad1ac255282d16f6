"""Pictures of errors (the extra `plots`)."""
