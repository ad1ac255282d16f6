"""Every TensorRT name in backends/trt exists in both versions, or is guarded by the capability of its version."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trt.backend_model import SETUP
from trt.stubs import compact

from layerwise._tool.backends.trt.capabilities import CAPABILITIES, Capability

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "backends" / "trt").rglob("*.py"))
API = {version: compact.load(version) for version in (10, 11)}
RunIn = Callable[..., str]
# Names that only one version has and whose capability is called otherwise.
BESIDE = {"set_output_type": "layer_precision", "reset_output_type": "layer_precision",
          "set_calibration_profile": "calibrators", "get_calibration_profile": "calibrators"}  # fmt: skip
OWNERS = {"IAlgorithm": "algorithm_selector", "IInt8": "calibrators", "CalibrationAlgoType": "calibrators"}


def members(api: dict[str, Any]) -> dict[str, set[str]]:
    """Every member's name, and the classes that have it."""
    found: dict[str, set[str]] = {}
    for name, entry in api["classes"].items():
        for part in ("enum", "def", "static", "get", "set"):
            for member in entry.get(part, ()):
                found.setdefault(member, set()).add(name)
    return found


MEMBERS = {version: members(api) for version, api in API.items()}
TOP = {version: {*api["classes"], *api["functions"], *api["constants"]} for version, api in API.items()}


def has(version: int, place: str) -> bool:
    """Whether a recorded version has a class, or a class's member."""
    owner, _, member = place.partition(".")
    entry = API[version]["classes"].get(owner)
    if entry is None or not member:
        return entry is not None
    return any(member in entry.get(part, ()) for part in ("enum", "def", "static", "get", "set"))


def used(path: Path) -> Iterator[tuple[str, int, tuple[int, ...]]]:
    """Names of a file that TensorRT has, their lines, and the versions that have them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Attribute):
            continue
        base = node.value
        on_module = (isinstance(base, ast.Name) and base.id == "trt") or (
            isinstance(base, ast.Attribute) and base.attr in ("trt", "_trt")
        )
        table: Any = TOP if on_module else MEMBERS
        versions = tuple(version for version in (10, 11) if node.attr in table[version])
        if versions or (on_module and not node.attr.startswith("__")):
            yield node.attr, node.lineno, versions


def plain(name: str) -> str:
    return name.replace("_", "").lower()


def strings_of(path: Path) -> set[Any]:
    """The constants of a file."""
    return {node.value for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Constant)}


def covering(name: str, version: int) -> set[str]:
    """The capabilities that speak of a name which only one version has."""
    found = {key for key, row in CAPABILITIES.items() if row.only == version and _speaks(row, name)}
    if name in BESIDE:
        found.add(BESIDE[name])
    owners = MEMBERS[version].get(name, {name})
    return found | {key for start, key in OWNERS.items() if all(owner.startswith(start) for owner in owners)}


def _speaks(row: Capability, name: str) -> bool:
    last = plain(row.place.rpartition(".")[2])
    return plain(name) in last or (len(last) > len("INT8") and last in plain(name))


@pytest.mark.parametrize("key", CAPABILITIES)
def test_a_capability_exists_only_in_its_version(key: str) -> None:
    row = CAPABILITIES[key]
    assert has(row.only, row.place) and not has(21 - row.only, row.place)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_of_one_version_are_guarded_by_a_capability(path: Path) -> None:
    """The capability is asked for in the file itself, or in one that imports it."""
    strings = strings_of(path)
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for other in FILES:
        if f"{module} " in other.read_text(encoding="utf-8"):
            strings |= strings_of(other)
    for name, line, versions in used(path):
        assert versions, f"{path.name}:{line}: neither version has {name}"
        if len(versions) == 1:
            keys = covering(name, versions[0])
            assert keys & strings, f"{path.name}:{line}: only TensorRT {versions[0]} has {name}; capabilities: {keys}"


def test_the_check_finds_names_of_one_version() -> None:
    assert covering("int8_calibrator", 10) >= {"calibrators"}
    assert covering("dla_workspace_allocation_strategy", 11) == {"dla_workspace"}
    assert not covering("platform_has_fast_fp16", 10)


def test_the_backends_build_and_run_pass_the_real_bindings(in_fake: RunIn, tmp_path: Path) -> None:
    scenario = (
        f"import sys; sys.path.insert(0, {str(ROOT / '.editable')!r})\n{SETUP}"
        + """
options = ConfigOptions(version_compatible=True, refittable=True, sparse_weights=True, optimization_level=2,
    pool_limits={"workspace": 1 << 24}, profiling_verbosity="detailed", max_aux_streams=2)
runner = opened(conv(), profiles=[range_of(1, 2, 4), range_of(4, 6, 8)], config=options, save_engine="m.engine")
print(runner.infer(feed(3)).outputs["y"].shape)
"""
    )
    log = tmp_path / "forwarded.txt"
    log.touch()
    assert "(3, 4, 6, 6)" in in_fake(
        scenario, LAYERWISE_HOME=str(tmp_path / "home"), LAYERWISE_FAKE_TRT_FORWARD_LOG=str(log)
    )
    lines = log.read_text(encoding="utf-8").splitlines()
    assert not [line for line in lines if line.startswith("skipped")]
    if lines:
        wanted = {"Builder.build_serialized_network", "IOptimizationProfile.set_shape", "IBuilderConfig.set_flag"}
        assert {f"forwarded {name}" for name in wanted} <= set(lines)
