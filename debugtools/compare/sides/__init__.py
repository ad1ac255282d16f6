"""The sides of a comparison before anything is observed: models, runners, marked tensors, feeds."""
