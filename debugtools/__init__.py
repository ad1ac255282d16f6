"""Tools that find faults: comparing, locating, searching, checking and benchmarking, each as a job."""
