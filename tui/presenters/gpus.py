"""The GPUs of this machine in a line each: how busy they are, and with whose processes."""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from layerwise._tool.backends.sizes import size_text
from layerwise._tool.backends.text import shown
from layerwise._tool.tui.presenters.numbers import bar
from layerwise._tool.tui.presenters.text import Glyphs, Line, clip, merge

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.workspace.gpu_load import GpuLoad, GpuProcess

_BAR, _BUSY = 6, 50.0


def gpu_lines(gpus: "Sequence[GpuLoad]", own: Container[int], cells: int, glyphs: Glyphs) -> list[Line]:
    """`gpu0 H200 ███░░░ 41%  18 GB of 141 GB   others: 2 (alice 12 GB)`. own: pids of the workspace's workers."""
    return [clip(_gpu(gpu, own, glyphs), cells) for gpu in gpus]


def _gpu(gpu: "GpuLoad", own: Container[int], glyphs: Glyphs) -> Line:
    full, empty = ("#", ".") if glyphs.ellipsis == "~" else ("█", "░")
    busy = "" if gpu.busy is None else f"{bar(gpu.busy, 100, _BAR, full, empty)} {gpu.busy:.0f}%  "
    name = shown(gpu.name.removeprefix("NVIDIA "), 24)
    others = [process for process in gpu.processes if process.pid not in own]
    line: Line = [(f" gpu{gpu.index} ", "strong"), (f"{name}  ", "")]
    line += [(busy, "warn" if (gpu.busy or 0.0) >= _BUSY and others else "accent")]
    line += [(f"{size_text(gpu.used)} of {size_text(gpu.total)}", "")]
    return merge([*line, (f"   others: {_others(others)}", "warn")] if others else line)


def _others(processes: "Sequence[GpuProcess]") -> str:
    """`2 (alice 12 GB)`: how many, and what each user's take."""
    users: dict[str, float] = {}
    for process in processes:
        users[process.user] = users.get(process.user, 0.0) + process.memory
    told = ", ".join(
        f"{shown(user, 20) or 'unknown'}{f' {size_text(size)}' if size else ''}" for user, size in users.items()
    )
    return f"{len(processes)} process{'es' * (len(processes) != 1)} ({told})"
