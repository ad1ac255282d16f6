"""Tests of what only newer packages can do: `make oldest` runs the others on the oldest that are declared."""

from importlib.metadata import PackageNotFoundError, version

import pytest


def installed(package: str) -> tuple[int, ...]:
    """The version of a distribution, major and minor; of whichever build of onnxruntime there is."""
    names = ["onnxruntime", "onnxruntime-gpu"] if package == "onnxruntime" else [package]
    for name in names:
        try:
            return tuple(int(part) for part in version(name).split(".")[:2])
        except PackageNotFoundError:
            continue
    raise PackageNotFoundError(package)


def since(package: str, wanted: str, why: str) -> pytest.MarkDecorator:
    """Skips a test before version `wanted` (major.minor) of a package."""
    old = installed(package) < tuple(int(part) for part in wanted.split("."))
    return pytest.mark.skipif(old, reason=f"before {package} {wanted}: {why}")
