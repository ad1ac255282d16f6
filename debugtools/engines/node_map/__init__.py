"""Which nodes of a model the layers of an engine do: by names, and where those are the engine's own, by values."""
