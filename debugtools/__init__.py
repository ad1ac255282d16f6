"""Tools that find faults: comparing, locating, searching, checking and benchmarking, each as a job."""

ACTIONS = "layerwise._tool.debugtools.actions"  # the module that offers the actions of jobs
