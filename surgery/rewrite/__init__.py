"""Changes of graphs that edits and commands share: nodes bypassed, rewired, deduplicated, left out; opsets."""
