"""What a job says of itself: its journal, written, read, replayed and passed on."""
