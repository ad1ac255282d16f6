"""Where things lie: what the user names, and his own settings."""

import os
from collections.abc import Mapping
from pathlib import Path

from layerwise._tool.backends.errors import LayerwiseError


def config_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """$XDG_CONFIG_HOME/layerwise, else ~/.config/layerwise. Relative paths do not count, as XDG says."""
    base = environment.get("XDG_CONFIG_HOME", "")
    home = base if base.startswith("/") else os.path.expanduser("~/.config")  # noqa: PTH111 (Path.expanduser raises)
    return Path(home, "layerwise")


def config_file() -> Path:
    """The user's own file of settings, there or not."""
    return config_folder() / "config.toml"


def user_path(text: str) -> Path:
    """Expand a path typed by the user: `~` is the home folder, or stays if there is no such user."""
    return Path(os.path.expanduser(text.strip()))  # noqa: PTH111 (Path.expanduser raises)


def current_folder() -> Path:
    """Return the folder that relative paths start from. Raises LayerwiseError if it was removed."""
    try:
        return Path.cwd()
    except OSError as error:
        raise LayerwiseError(f"the current folder cannot be used ({error.strerror}): change to another") from error


def absolute_path(path: Path) -> Path:
    """Return the absolute path without `..`, so that a file has one path by whatever way it is named.

    If the current folder was removed, the path unchanged: no such file exists.
    """
    try:
        whole = path.absolute()
    except OSError:
        return path
    plain = Path(os.path.normpath(whole))
    if plain == whole:
        return whole
    try:
        same = plain.parent.samefile(whole.parent)
    except OSError:  # there is no such folder
        return whole
    return plain if same else Path(os.path.realpath(whole.parent), whole.name)  # else .. leaves a link
