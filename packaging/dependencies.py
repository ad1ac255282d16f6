"""Run tests on the oldest, or the newest, dependencies that are declared: `dependencies.py oldest [PYTHON]`.

The fast tests and some that start processes, in a new environment made with `uv`, which resolves to the lowest versions
that have wheels. PYTHON: a version or a path.
Exit code: the tests'.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ROOT / "packaging" / "core" / "pyproject.toml"
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
NOT_FOR_TESTS = ("import-linter", "mypy", "ruff", "types-psutil", "uv", "ziglang")
PROCESSES = ("tests/backends/jobs/test_control.py", "tests/tui/cli/test_run.py", "tests/tui/cli/test_surgeon.py")
QUICK = "not process and not terminal and not parity and not slow"


def main(which: str, python: str = sys.executable) -> int:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        interpreter, pins = place / "env" / "bin" / "python", place / "pins.txt"
        uv("venv", "--python", python, str(place / "env"))
        chosen = ("--resolution", RESOLUTIONS[which], "--extra", "cpu", "--no-annotate", "--no-header")
        uv("pip", "compile", "--no-build", *chosen, "--python", str(interpreter), str(CORE), "-o", str(pins))
        print(pins.read_text(), flush=True)
        uv("pip", "install", "--python", str(interpreter), "-r", str(pins), *tools())
        command = [str(interpreter), "-m", "pytest", "-n", os.environ.get("QUICK_JOBS", "2")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / ".editable")}
        runs = [(*command, "-m", QUICK), (*command, *PROCESSES)]
        return max(subprocess.run(run, cwd=ROOT, env=environment, check=False).returncode for run in runs)


def uv(*words: str) -> None:
    subprocess.run(["uv", words[0], "--quiet", *words[1:]], check=True)


def tools() -> list[str]:
    """The requirements of the extra `dev` that tests need; by pattern, since Python 3.10 reads no TOML."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(r"^dev = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    lines = re.findall(r'"([^"]+)"', found[1])
    return [line for line in lines if not line.startswith(NOT_FOR_TESTS)]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
