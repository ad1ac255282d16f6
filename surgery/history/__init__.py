"""The edits made to a model: their saved history, requests to the warm worker, validity checks of the results."""
