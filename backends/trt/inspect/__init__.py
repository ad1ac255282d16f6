"""What is in engines and networks, and which nodes the parser takes."""
