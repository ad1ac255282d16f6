"""The GPUs of the machine on the Jobs screen, told by an nvidia-smi of our own."""

import os
from pathlib import Path

import pytest
from support.bench import Bench, with_bench

from layerwise._tool.backends.jobs.workspace.gpu_load import gpu_loads
from layerwise._tool.tui.presenters.gpus import gpu_lines
from layerwise._tool.tui.presenters.text import ASCII, UNICODE, plain, width

GPUS = """0, NVIDIA H200, GPU-aaaa, 41, 18432, 143771
1, NVIDIA H200, GPU-bbbb, [N/A], 0, 143771
broken line
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A command that answers like nvidia-smi: a process of ours, and one that nobody knows."""
    script = tmp_path / "nvidia-smi"
    apps = f"GPU-aaaa, {os.getpid()}, 12288\nGPU-aaaa, 4194399, [N/A]\nGPU-bbbb, x, 1\n"
    script.write_text(f"#!/bin/sh\ncase $1 in *apps*) printf '{apps}' ;; *) printf '{GPUS}' ;; esac\n")
    script.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return script


def test_gpus_are_told_with_whose_processes_are_on_them(driver: Path) -> None:
    first, second = gpu_loads()
    assert (first.index, first.name, first.busy, second.busy) == (0, "NVIDIA H200", 41.0, None)
    assert [process.pid for process in first.processes] == [os.getpid(), 4194399] and not second.processes
    texts = [plain(line).strip() for line in gpu_lines([first, second], {4194399}, 100, UNICODE)]
    user = first.processes[0].user
    assert user and texts[0] == f"gpu0 H200  ██░░░░ 41%  19.3 GB of 151 GB   others: 1 process ({user} 12.9 GB)"
    assert texts[1] == "gpu1 H200  0 B of 151 GB"
    others = plain(gpu_lines([first], {os.getpid()}, 100, ASCII)[0])
    assert others.isascii() and others.endswith("others: 1 process (unknown)")
    assert width(gpu_lines([first], (), 40, UNICODE)[0]) <= 40


def test_the_strip_stands_above_the_jobs(driver: Path, tmp_path: Path) -> None:
    async def story(bench: Bench) -> None:
        await bench.press("3")
        await bench.see("gpu0 H200", "others: 2 processes", "gpu1 H200  0 B of 151 GB", "state     title")

    with_bench(None, story, size=(100, 30))


def test_without_a_driver_there_are_none(driver: Path) -> None:
    driver.write_text("#!/bin/sh\nexit 9\n")
    assert gpu_loads() == []
