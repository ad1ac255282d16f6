"""Random keys, typed one by one and as one burst: the app must be in the same state after both.

`place` prepares models and workspaces, `draw` draws the keys from the registry of commands, `drive` types them, `state`
says what is compared. The command is `python -m tests.support.bursts`.
"""
