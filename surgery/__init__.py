"""Models read, indexed, cut, changed and written, without running more of them than a change needs."""
