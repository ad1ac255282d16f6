"""What is typed: bytes become keys, and keys become deeds one after the other."""
