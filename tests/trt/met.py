"""Which TensorRT names of backends/trt the real bindings have met: `python tests/trt/met.py` (two minutes).

Runs every forwarded scenario and the command lines of test_real.py on the real bindings of both versions over stub
libraries, and prints the names that were never called there.
"""

import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from trt.stubs import build, load  # noqa: E402
from trt.test_contract_backend import API, FILES, MEMBERS, used  # noqa: E402


def met(version: int, log: Path) -> set[str]:
    """The calls `Class.name` that the bindings of a version took. RuntimeError where a scenario failed."""
    live = build.live(version)
    found = load.environment(str(live.folder), [str(library) for library in live.libraries])
    env = {**os.environ, "LAYERWISE_FAKE_TRT_FORWARD_LOG": str(log)}
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2"]
    forwarded = {**env, **found, "LAYERWISE_FAKE_TRT_FORWARD": "1"}
    scenarios = ([str(HERE), "-k", f"forwarded and trt{version}"], env)
    commands = ([str(HERE / "test_real.py"), "-k", f"fake{version}"], forwarded)
    for words, environment in (scenarios, commands):
        done = subprocess.run([*pytest, *words], env=environment, capture_output=True, text=True, check=False)
        print(f"TensorRT {version}: {done.stdout.strip().splitlines()[-1]}")
        if done.returncode:
            raise RuntimeError(done.stdout)
    lines = {line.strip() for line in log.read_text(encoding="utf-8").splitlines()}
    return {line.removeprefix("forwarded ") for line in lines if line.startswith("forwarded ")}


def unmet(version: int, calls: set[str]) -> dict[str, list[str]]:
    """Names that this version has and no call was made of, with the places in our code; enumerators apart."""
    seen = {call.rpartition(".")[2].rstrip("=") for call in calls}
    enumerators = {name for entry in API[version]["classes"].values() for name in entry.get("enum", ())}
    found = defaultdict(list)
    for path in FILES:
        for name, line, versions in used(path):
            if version in versions and name not in seen | enumerators | API[version]["classes"].keys():
                place = path.relative_to(HERE.parents[1] / "backends" / "trt")
                found[name].append(f"{place}:{line} ({', '.join(sorted(MEMBERS[version].get(name, ())))[:60]})")
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for version in (10, 11):
            calls = met(version, Path(folder, f"{version}.txt"))
            print(f"TensorRT {version}: {len(calls)} names called on the real bindings; called in our code, not there:")
            for name, places in sorted(unmet(version, calls).items()):
                print(f"  {name}: {'; '.join(places[:2])}")


if __name__ == "__main__":
    main()
