"""Random walks over all screens of the app, without a terminal: keys from the registry, lines, pastes, clicks, sizes.

`places` makes models and workspaces, `keys` draws what is done next, `walk` does it and looks for what must not be.
The command is `python -m tests.support.walks`.
"""
