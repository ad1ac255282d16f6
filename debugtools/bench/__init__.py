"""`bench`: how fast runners are, in turns and layer by layer, and the files of the results."""
