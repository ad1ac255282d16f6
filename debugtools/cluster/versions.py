"""Which versions compute: of the one who asks and of the one who runs, which must be the same."""

import hashlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

import layerwise._tool
from layerwise._tool.backends.cluster.protocol import Runs
from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.versions import versions

VERSIONS = f"{__name__}:versions_text"
"""The function that workers are asked: as `backends.cluster.remote` calls it."""
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


def agreed_versions(runs: Runs) -> dict[str, str]:
    """The versions that all who run cells have. LayerwiseError where they differ, or are not ours, with both named."""
    agreed: dict[str, str] = {}
    first = ""
    for worker, found in runs.versions().items():
        if differences := skew(own_versions(), found):
            raise LayerwiseError(f"{shown(worker)} is not of the version of this command: {'; '.join(differences)}")
        if agreed and found != agreed:
            told = "; ".join(_between(agreed, found))
            raise LayerwiseError(f"the workers are not of one version: {told} ({shown(first)}, {shown(worker)})")
        agreed, first = dict(found), first or worker
    return agreed


def _between(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    names = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    return [
        f"{name} is {one.get(name, 'missing')} on one and {other.get(name, 'missing')} on the other" for name in names
    ]


def _code() -> str:
    """A hash of the code: a checkout has one version for a thousand commits."""
    made, root = hashlib.blake2b(digest_size=5), Path(layerwise._tool.__file__).parent
    for package in ("backends", "surgery", "debugtools"):
        for path in sorted((root / package).rglob("*.py")):
            made.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return made.hexdigest()
