"""What jobs came to, as one neutral structure, and the files that other tools read it from."""
