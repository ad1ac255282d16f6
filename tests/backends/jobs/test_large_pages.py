"""Large pages are asked for where they help."""

from pathlib import Path

import pytest

from layerwise._tool.backends.jobs.processes.control import large_pages


@pytest.mark.parametrize(
    ("device", "features", "asked"),
    [
        ("0x0005", "0110010100000000", False),  # a balloon that reports free pages
        ("0x0005", "0110000100000000", True),
        ("0x0002", "0010011001100100", True),
        ("0x0005", "", True),
    ],
)
def test_large_pages_are_asked_for_unless_free_memory_is_given_back(
    tmp_path: Path, device: str, features: str, asked: bool
) -> None:
    folder = tmp_path / "virtio0"
    folder.mkdir()
    (folder / "device").write_text(f"{device}\n")
    (folder / "features").write_text(f"{features}\n")
    (tmp_path / "virtio1").mkdir()
    assert ("GLIBC_TUNABLES" in large_pages(tmp_path)) == asked


def test_without_such_devices_they_are_asked_for(tmp_path: Path) -> None:
    assert large_pages(tmp_path) and large_pages(tmp_path / "none")
