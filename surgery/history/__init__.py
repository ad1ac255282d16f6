"""The edits made to a model: their history on file, requests to the warm worker, soundness of what they make."""
