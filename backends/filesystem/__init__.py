"""Files and folders: opened without trust, written whole or not at all, and whose they are."""
