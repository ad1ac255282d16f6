"""What runs elsewhere: versions that must agree, and commands on a dask cluster."""
