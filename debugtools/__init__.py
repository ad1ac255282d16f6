"""What finds faults: comparing, locating, searching, checking, benchmarking, and the jobs that do it."""
