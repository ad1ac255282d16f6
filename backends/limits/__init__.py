"""Memory limits for a process, and native code isolated so that a crash does not end the process."""
