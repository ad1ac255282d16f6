"""Where jobs are kept, whose it is, and who may use the machine: index, locks, leases."""
