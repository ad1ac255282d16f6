"""Is a model sound, and if not, which of its nodes are at fault?"""
