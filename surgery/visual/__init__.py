"""A model's graph as one web page: the model side lays it out, `page/` draws it."""
