"""How far verdicts are to be trusted: faults that are red, clean pairs that are not."""
