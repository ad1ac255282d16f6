"""`check lint` and `check compatibility`: is a model valid, and which backends support it?"""
