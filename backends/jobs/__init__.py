"""Jobs: work described by a folder and done in a process of its own; the client's side and the worker's."""

OWN = "layerwise._tool.backends.jobs.actions"  # offers the actions that need nothing from above
