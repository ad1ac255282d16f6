"""PyTorch modules beside their exports: how much is mapped, which faults are found, which nodes know their module.

Needs torch and transformers, which are no part of the environment: install both in a folder and name it in PYTHONPATH.
"""
