"""Is a model sound, and which backends take it?"""
