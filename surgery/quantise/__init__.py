"""Formats of low precision, fake quantisation in numpy and as nodes, and graphs whose nodes can be switched."""
