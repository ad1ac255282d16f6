"""Files and folders: opened without trusting their type, written atomically, with the right owner and mode."""
