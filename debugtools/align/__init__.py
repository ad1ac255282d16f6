"""Which tensor of one implementation of a network is which tensor of another one."""
