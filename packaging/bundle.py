"""Everything to install offline, in one folder: `bundle.py FOLDER [EXTRAS] [PYTHON_VERSION]`.

The wheels of layerwise-core with its extras (comma-separated; default: cpu) and all that they require, for this
platform; requirements.txt with the SHA-256 of each; install.sh, which checks them and needs no network. From the same
sources and the same index the hashes are the same.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
INSTALL = """#!/bin/sh
# Installs into the environment of PYTHON (python3), from this folder alone.
cd "$(dirname "$0")" || exit 1
exec "${PYTHON:-python3}" -m pip install --no-index --find-links wheels --require-hashes -r requirements.txt "$@"
"""


def main(folder: str, extras: str = "cpu", python: str = "") -> None:
    place = Path(folder).resolve()
    wheels = place / "wheels"
    if wheels.exists():
        sys.exit(f"{wheels} is there already: choose another folder")
    wheels.mkdir(parents=True)
    pip("wheel", "--no-deps", "--wheel-dir", str(wheels), str(ROOT / "packaging" / "core"))
    (own,) = wheels.glob("*.whl")
    version = ["--python-version", python] if python else []
    wanted = f"{own}[{extras}]" if extras else str(own)
    pip("download", "--only-binary", ":all:", *version, "--dest", str(wheels), wanted)
    lines = [pinned(wheel) for wheel in sorted(wheels.iterdir())]
    (place / "requirements.txt").write_text("".join(lines), encoding="utf-8")
    (place / "install.sh").write_text(INSTALL, encoding="utf-8")
    (place / "install.sh").chmod(0o755)
    size = sum(wheel.stat().st_size for wheel in wheels.iterdir())
    print(f"{place}: {len(lines)} wheels, {size >> 20} MiB; install them with {place / 'install.sh'}")


def pip(*words: str) -> None:
    subprocess.run([sys.executable, "-m", "pip", words[0], "--quiet", *words[1:]], check=True)


def pinned(wheel: Path) -> str:
    """A requirement of exactly this file."""
    name, version, *_ = wheel.name.split("-")
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


if __name__ == "__main__":
    main(*sys.argv[1:])
