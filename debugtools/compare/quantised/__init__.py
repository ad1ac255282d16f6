"""What a quantised model holds in few bits, and how well: against its float original where there is one."""
