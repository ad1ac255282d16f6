"""Where the workspace is. Imports little: a command's worker is started with it, before anything else is done."""

import os
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.places import config_file, user_path


def default_root() -> Path:
    """$LAYERWISE_HOME, else what the user's settings say, else the user's state folder for layerwise.

    Raises LayerwiseError where there is none of them.
    """
    home = os.environ.get("LAYERWISE_HOME") or _home_of_settings()
    if home:
        return user_path(home)
    from platformdirs import user_state_dir

    try:
        return Path(user_state_dir("layerwise"))
    except RuntimeError as error:
        raise LayerwiseError("this user has no home folder: set LAYERWISE_HOME to a folder of yours") from error


def _home_of_settings() -> str:
    if not os.path.lexists(config_file()):
        return ""
    from layerwise._tool.backends.settings import own_workspace

    return own_workspace()
