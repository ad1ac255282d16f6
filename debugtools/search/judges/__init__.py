"""Who says whether a candidate is good or bad: a comparison, a command, a person."""
