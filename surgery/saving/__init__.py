"""Structures written as models: weights are streamed, or referred to where they are."""
