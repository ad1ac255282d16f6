"""PyTorch modules as a backend: from a script, an exported program or a Hugging Face folder. Nothing is unpickled.

torch itself is imported when a runner is opened, in a worker.
"""
