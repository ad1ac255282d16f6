"""Where the user's own settings lie."""

import os
from collections.abc import Mapping
from pathlib import Path


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """$XDG_CONFIG_HOME/layerwise, else ~/.config/layerwise. Relative paths do not count, as XDG says."""
    base = environment.get("XDG_CONFIG_HOME", "")
    home = base if base.startswith("/") else os.path.expanduser("~/.config")  # noqa: PTH111 (Path.expanduser raises)
    return Path(home, "layerwise")


def config_file() -> Path:
    """The user's own file of settings, there or not."""
    return config_folder() / "config.toml"
