"""Graph transformations that edits and commands share: bypassing, rewiring, deduplication, clean-up; opsets."""
