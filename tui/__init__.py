"""The faces: the words of the command line and the app on a terminal."""
