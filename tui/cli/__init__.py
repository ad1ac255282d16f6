"""The command line `layerwise …`: options become requests, requests become jobs, and their events become reports."""
