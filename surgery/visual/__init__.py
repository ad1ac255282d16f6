"""A model's graph as a web page: this package computes the layout, `page/` renders it."""
