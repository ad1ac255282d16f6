"""Which versions compute: of the one who asks and of the one who runs, which must be the same."""

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

import layerwise._tool
from layerwise._tool.backends.versions import versions

_OTHERS = ("torch", "distributed")  # not read by backends.versions
_VARIANTS = ("onnxruntime", "tensorrt")  # distributions of one library: onnxruntime-gpu, tensorrt_cu12


@cache
def own_versions() -> dict[str, str]:
    """Name -> version of what a cell's rows depend on: Layerwise itself (a hash of its code too), Python, libraries."""
    found = {"layerwise": f"{layerwise._tool.VERSION} (code {_code()})"}
    found["python"] = "{}.{}".format(*sys.version_info)
    for name, version in versions().items():
        known = next((variant for variant in _VARIANTS if name.startswith(variant)), name)
        if not name.startswith("layerwise"):
            found.setdefault(known, version.partition(" ")[0])
    from importlib import metadata

    for name in _OTHERS:
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return dict(sorted(found.items()))


def versions_text(_: str = "") -> str:
    """The same as JSON, for a worker that is asked."""
    return msgspec.json.encode(own_versions()).decode()


def skew(ours: Mapping[str, str], theirs: Mapping[str, str]) -> list[str]:
    """What differs, in words with both versions; `ours` is the one who asks. What only one of them has counts only
    where it is Layerwise."""
    return [
        f"{name} is {ours.get(name, 'missing')} here and {theirs.get(name, 'missing')} there"
        for name in sorted({*ours, *theirs})
        if ours.get(name) != theirs.get(name) and (name == "layerwise" or (name in ours and name in theirs))
    ]


def _code() -> str:
    """A hash of the code: a checkout has one version for a thousand commits."""
    made, root = hashlib.blake2b(digest_size=5), Path(layerwise._tool.__file__).parent
    for package in ("backends", "surgery", "debugtools"):
        for path in sorted((root / package).rglob("*.py")):
            made.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return made.hexdigest()
