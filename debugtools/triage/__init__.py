"""The debug-accuracy flowchart as a guided search: each step measures, answers, and says what follows from it."""
