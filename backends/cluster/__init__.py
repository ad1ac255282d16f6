"""Our functions on a dask cluster: a text goes to a worker, a text comes back."""
