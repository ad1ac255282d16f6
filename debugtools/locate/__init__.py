"""Which node is wrong by itself: each part of the suspect's graph runs on the reference's tensors."""
