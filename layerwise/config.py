"""Switches, read from the environment when this module is imported; a script may also set them here.

Each is looked up as LAYERWISE_<NAME> and, so that what was set up for Polygraphy holds, as POLYGRAPHY_<NAME>.
"""

import os
import sys


def _text(name: str, default: str) -> str:
    return os.environ.get(f"LAYERWISE_{name}", os.environ.get(f"POLYGRAPHY_{name}", default))


def _switch(name: str) -> bool:
    return _text(name, "0") != "0"


INTERNAL_CORRECTNESS_CHECKS = _switch("INTERNAL_CORRECTNESS_CHECKS")
"""Whether what should never happen is an error: an object changed by a method that must not, for one."""

AUTOINSTALL_DEPS = _switch("AUTOINSTALL_DEPS")
"""Kept for scripts that read it. Nothing is ever installed: a package that is missing is an error that names it."""

ASK_BEFORE_INSTALL = _switch("ASK_BEFORE_INSTALL")
"""Kept for scripts that read it, as nothing is ever installed."""

INSTALL_CMD = _text("INSTALL_CMD", f"{sys.executable} -m pip install").split()
"""The command that the error for a missing package tells to use."""

ARRAY_SWAP_THRESHOLD_MB = int(_text("ARRAY_SWAP_THRESHOLD_MB", "-1"))
"""MiB above which an array of a result waits on the disk; negative: none does, 0: all do."""

USE_TENSORRT_RTX = _switch("USE_TENSORRT_RTX")
"""Whether TensorRT for RTX takes TensorRT's place."""
