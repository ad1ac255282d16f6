"""Writing past the page cache gives the same files as writing through it."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from layerwise._tool.backends.filesystem import direct_io as paced
from layerwise._tool.backends.filesystem.direct_io import BLOCK, PacedStream

FOLDERS = [None, *([Path("/dev/shm")] if Path("/dev/shm").is_dir() else [])]
SIZES = st.one_of(st.integers(0, 9), st.integers(BLOCK - 2, BLOCK + 2), st.integers(0, 3 * BLOCK))


@pytest.mark.parametrize("shared", FOLDERS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(start=st.sampled_from([0, 1, 4096]), sizes=st.lists(SIZES, max_size=5), late=st.lists(SIZES, max_size=2))
def test_the_file_has_what_was_written(
    on_disk: Path, shared: Path | None, start: int, sizes: list[int], late: list[int]
) -> None:
    data = np.random.default_rng(len(sizes)).bytes(3 * BLOCK)
    path = (shared or on_disk) / f"paced-{os.getpid()}"
    expected, copied = io.BytesIO(), io.BytesIO()
    try:
        with path.open("w+b") as file:
            file.write(b"x" * start)
            stream = PacedStream(file)
            for size in sizes:
                assert stream.write(memoryview(data)[:size]) == size
            stream.flush()
            assert file.tell() == start + sum(sizes)
            for size in late:
                stream.write(data[:size])
            stream.append_to(copied)
        expected.write(b"x" * start + b"".join(data[:size] for size in (*sizes, *late)))
        assert path.read_bytes() == expected.getvalue() == copied.getvalue()
    finally:
        path.unlink(missing_ok=True)


def test_large_data_do_not_stay_in_the_page_cache(on_disk: Path) -> None:
    with (on_disk / "large").open("w+b") as file:
        stream = PacedStream(file)
        for _ in range(20):
            stream.write(bytes(BLOCK))
        stream.flush()
    assert cached(on_disk / "large") <= paced.STEP


def cached(path: Path) -> int:
    """Bytes of a file that are in the page cache."""
    done = subprocess.run(["fincore", "-b", "-n", "-o", "RES", path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("fincore is not here to ask")
    return int(done.stdout or 0)


LIMITED = """
import resource, signal, sys
from layerwise._tool.backends.filesystem.direct_io import BLOCK, PacedStream
resource.setrlimit(resource.RLIMIT_FSIZE, (3 * BLOCK // 2, 3 * BLOCK // 2))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open(sys.argv[1], "w+b") as file:
    stream = PacedStream(file)
    stream.write(b"1" * (BLOCK + 5))
    stream.write(b"2" * BLOCK)
    stream.flush()
"""


def test_a_file_size_limit_is_reported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LIMITED, str(tmp_path / "limited")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "File too large" in done.stderr
