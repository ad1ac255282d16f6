"""The matrix under load: `python -m support.matrices WHAT [FOLDER] [NUMBER] [SECONDS]` (tests/ and dask on the path).

equal   12 models × 3 sides × 2 feeds on four worker processes against the serial run, cell by cell; bytes a cell
kills   random kills of workers, scheduler and client while a matrix runs on a cluster at an address
cancel  how soon a cancelled matrix has ended, and all it started
speed   waiting cells on four worker processes against one after the other
skew    a worker of another version
gpus    cells that lease GPUs: never two on one
shared  cells that compute on GPUs, another login's search, and kills: who is on which GPU, by driver, locks, journals

Figures are printed as JSON. tests/debugtools/matrix/test_cluster.py runs a small sample of it.
"""
