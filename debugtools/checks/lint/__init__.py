"""`check lint`: is a model valid, and if not, which of its nodes are at fault?"""
