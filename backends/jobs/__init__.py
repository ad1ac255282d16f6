"""Jobs: work described by a folder and done in a process of its own; the client's side and the worker's."""
