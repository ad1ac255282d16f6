"""Record the debug loop by keyboard, and the first minute from an empty home: docs/recordings/NAME.cast and stills.

    python docs/make_recording.py [FOLDER] [--only loop|slow|first]

A shell in a pseudo-terminal runs the real program; each key is sent at the pace of a person who looks at the screen
first. What comes is written as an asciinema file (version 2, `asciinema play`), with the keys pressed and a marker for
each step; nothing is cut or sped up. `slow` is the same with 300 ms between key and screen, 150 ms each way. The stills
are the screens at the markers. Exit code 1 if the loop takes longer than two minutes.
"""

import json
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections import deque
from collections.abc import Callable
from fcntl import ioctl
from io import StringIO
from itertools import groupby
from pathlib import Path
from select import select

ROOT = Path(__file__).resolve().parent.parent
COLUMNS, ROWS, MOST = 100, 30, 120.0
DELAY = 0.15
FAULT = "/encoder/layer.3/attention/self/Softmax"
KITTY_OFF = b"\x1b[<u"  # pyte does not know it
KEYS = {"enter": "\r", "escape": "\x1b", "space": " ", "tab": "\t"}
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import onnx  # noqa: E402
import pyte  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.style import Style  # noqa: E402
from rich.text import Text  # noqa: E402
from support.told import unfinished  # noqa: E402

from layerwise._tool.surgery.demo import make_demo  # noqa: E402

_WEB_FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


class Recording:
    """A shell on a terminal of its own, and what is typed and seen. delay: seconds each way."""

    def __init__(self, home: Path, work: Path, delay: float) -> None:
        self.screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        self._delay = delay
        self._events: list[tuple[float, str, str]] = []
        self._coming: deque[tuple[float, bytes]] = deque()
        self._going: deque[tuple[float, bytes]] = deque()
        self._rest = b""
        self.stills: dict[str, str] = {}
        self.pictures: dict[str, str] = {}
        self._master, slave = pty.openpty()
        ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8",
               "PS1": "$ ", "ORT_DISABLE_TELEMETRY": "1"}  # fmt: skip
        self._shell = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], stdin=slave, stdout=slave, stderr=slave, cwd=work, env=env,
            start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )  # fmt: skip
        os.close(slave)
        self.started = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def close(self) -> None:
        self._shell.kill()
        self._shell.wait()
        os.close(self._master)

    # ── the line ──

    def look(self, seconds: float) -> None:
        """Let time pass: what is on its way arrives at either end."""
        until = time.monotonic() + seconds
        while True:
            now = time.monotonic()
            while self._going and self._going[0][0] <= now:
                os.write(self._master, self._going.popleft()[1])
            while self._coming and self._coming[0][0] <= now:
                self._shown(self._coming.popleft()[1])
            if now >= until:
                return
            if select([self._master], [], [], min(0.01, until - now))[0]:
                self._came(os.read(self._master, 1 << 16))

    def _came(self, data: bytes) -> None:
        self._coming.append((time.monotonic() + self._delay, data))

    def _shown(self, data: bytes) -> None:
        """The terminal gets bytes, draws them, and answers what they ask."""
        for asked, answer in ((b"\x1b[?2026$p", b"\x1b[?2026;2$y"), (b"\x1b[6n", b"\x1b[1;1R")):
            if asked in data:
                self._going.append((time.monotonic() + self._delay, answer))
        self._stream.feed(data.replace(KITTY_OFF, b""))
        whole = self._rest + data
        text = whole.decode("utf-8", "ignore")
        kept = len(text.encode())
        self._rest = whole[kept:] if len(whole) - kept < 4 else b""
        self._events.append((self.seconds, "o", text))

    # ── the person ──

    def type(self, *keys: str, pause: float = 0.07) -> None:
        """Press keys one after the other."""
        for key in keys:
            sent = KEYS.get(key, key)
            self._events.append((self.seconds, "i", sent))
            self._going.append((time.monotonic() + self._delay, sent.encode()))
            self.look(pause)

    def see(self, seen: str | Callable[[str], object], limit: float = 60.0, then: float = 0.4) -> None:
        """Wait for something on the screen, then look at it for a moment."""
        holds = seen if callable(seen) else lambda text: seen in text
        until = time.monotonic() + limit
        while not holds(self.text):
            if time.monotonic() > until:
                raise TimeoutError(f"did not see {seen!r}\n{self.text}")
            self.look(0.05)
        self.look(then)

    def step(self, name: str) -> None:
        """A marker, and a still of the screen."""
        self._events.append((self.seconds, "m", name))
        self.stills[name] = self.text
        self.pictures[name] = self._picture(name)
        print(f"{self.seconds:6.1f} s  {name}", flush=True)

    def _picture(self, name: str) -> str:
        console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True)
        for y in range(ROWS):
            cells = [self.screen.buffer[y][x] for x in range(COLUMNS)]
            runs = groupby(cells, key=_style)
            parts = (("".join(cell.data for cell in run), style) for style, run in runs)
            console.print(Text.assemble(*parts, no_wrap=True, overflow="crop"))
        return _WEB_FONT.sub("", console.export_svg(title=name, unique_id=re.sub(r"\W+", "-", name)))

    def write(self, path: Path, title: str) -> None:
        """The asciinema file, and the stills beside it."""
        head = {"version": 2, "width": COLUMNS, "height": ROWS, "title": title, "env": {"TERM": "xterm-256color"}}
        lines = [json.dumps(head), *(json.dumps([round(at, 3), kind, text]) for at, kind, text in self._events if text)]
        path.write_text("\n".join(lines) + "\n")
        parts = [f"===== {name} =====\n\n{text.rstrip()}\n" for name, text in self.stills.items()]
        path.with_suffix(".txt").write_text("\n".join(parts))
        for number, (name, picture) in enumerate(self.pictures.items(), 1):
            word = re.sub(r"\W+", "-", name).strip("-")
            path.with_name(f"{path.stem}-{number}-{word}.svg").write_text(picture)


def _style(cell: "pyte.screens.Char") -> Style:
    def colour(name: str) -> str | None:
        if name == "default":
            return None
        name = name.replace("brown", "yellow").replace("bright", "bright_")
        return f"#{name}" if re.fullmatch(r"[0-9a-f]{6}", name) else name

    return Style(color=colour(cell.fg), bgcolor=colour(cell.bg), bold=cell.bold, reverse=cell.reverse,
                 underline=cell.underscore)  # fmt: skip


def plant(work: Path) -> None:
    """reference.onnx, and model.onnx with a Softmax over the wrong axis, as an exporter's mistake makes it."""
    paths = make_demo(work / "demo")
    model = onnx.load(paths.fp32)
    onnx.save(model, work / "reference.onnx")
    node = next(node for node in model.graph.node if node.name == FAULT)
    next(attribute for attribute in node.attribute if attribute.name == "axis").i = 2
    onnx.save(model, work / "model.onnx")
    shutil.rmtree(work / "demo")


def compare(tape: Recording) -> None:
    """The Run form: the reference as the second side, then start."""
    tape.type("R")
    tape.see("layerwise: every tensor")
    tape.type(*"jjjjjjjj", "enter")
    tape.see("model:")
    tape.type(*"reference.onnx", "enter", pause=0.05)
    tape.see(lambda text: "reference.onnx" in text and "model:" not in text)
    tape.type("r")


def answers(tape: Recording) -> None:
    """Each question is answered as was measured."""
    number = 0
    while "One culprit" not in tape.text:
        tape.see(lambda text, n=number: _question(text) > n or "One culprit" in text, then=0.5)
        number = max(number, _question(tape.text))
        found = re.findall(r"suggests\s+(good|bad)", tape.text)
        if "One culprit" not in tape.text and found:
            tape.type(found[-1][0])


def _question(text: str) -> int:
    found = re.search(r"question (\d+).*waiting for you", text)
    return int(found[1]) if found and "suggests" in text else 0


def loop(tape: Recording) -> None:
    """open, compare, first bad, locate, bisect by hand, mend, compare again, bundle."""
    tape.see("$")
    tape.type(*"layerwise model.onnx", "enter", pause=0.04)
    tape.see("411 nodes", then=1.0)
    tape.step("open")
    compare(tape)
    tape.see("done: 411 rows", then=1.5)
    tape.step("compare")
    tape.type("f")
    tape.see("Softmax", then=1.5)
    tape.step("first bad")
    tape.type("L")
    tape.see(lambda text: "local errors of job" in text and "kernel" in text, then=1.5)
    tape.type("4")
    tape.see("suspect   #", then=1.5)
    tape.step("locate")
    tape.type("I")
    tape.see("question 1", then=1.5)
    tape.step("bisect by hand: the first question")
    answers(tape)
    tape.look(1.5)
    tape.step("bisect by hand: found")
    tape.type("2", "f", "o", pause=0.4)
    tape.see(lambda text: "[1 Graph]" in text and "▸ Softmax #172 ◂" in text, then=0.8)
    tape.type("x")
    tape.see("[5 Surgery]", then=0.8)
    tape.type("e", "a")
    tape.see("NAME=VALUE", then=0.6)
    tape.type(*"axis=-1", "enter", pause=0.1)
    tape.see("enter applies", then=1.5)
    tape.step("mend by surgery: the change on view")
    tape.type("enter")
    tape.see("1 edit", then=0.6)
    tape.type("W")
    tape.see(":write")
    tape.type("\x15", *"write mended.onnx", "enter", pause=0.05)
    tape.see("1 edit, written", then=0.6)
    tape.step("mend by surgery: written")
    tape.type(*":open mended.onnx", "enter", pause=0.05)
    tape.see(lambda text: text.lstrip().startswith("mended.onnx") and "411 nodes" in text, then=0.8)
    compare(tape)
    tape.see("done: 411 rows", then=2.0)
    tape.step("compare again")
    tape.type(*":back", "enter")
    tape.see(lambda text: text.lstrip().startswith("model.onnx") and "411 nodes" in text, then=0.5)
    tape.type("4")
    tape.see("One culprit", then=0.5)
    tape.type("B")
    tape.see("bundle written", then=1.5)
    tape.step("bundle")
    tape.type("q")
    tape.look(1.0)


def first_minute(tape: Recording) -> None:
    """An empty home: doctor, the app without a word, its demo and the tour."""
    tape.see("$")
    tape.type(*"layerwise doctor", "enter", pause=0.05)
    tape.see(lambda text: text.rstrip().endswith("$") and "terminal" in text, then=3.0)
    tape.step("doctor")
    tape.type(*"clear; layerwise", "enter", pause=0.05)
    tape.see("Open what?", then=2.5)
    tape.step("the first screen")
    tape.type(*":tour", "enter", pause=0.08)
    tape.see("done: 411 rows", then=2.0)
    tape.step("the tour on the demo")
    tape.type("f")
    tape.see("Softmax", then=2.0)
    tape.step("the first bad layer")
    tape.type("o")
    tape.see("[1 Graph]", then=2.0)
    tape.step("its node")
    tape.type("?")
    tape.see("Help: keys", then=2.5)
    tape.step("help")
    tape.type("escape")
    tape.look(1.0)
    tape.type("q")
    tape.look(1.0)


TAPES = {
    "loop": (loop, 0.0, "The debug loop by keyboard"),
    "slow": (loop, DELAY, "The debug loop with 300 ms between key and screen"),
    "first": (first_minute, 0.0, "The first minute, from an empty home"),
}


def record(name: str, target: Path) -> float:
    """Make one recording; its seconds."""
    story, delay, title = TAPES[name]
    folder = Path(tempfile.mkdtemp(prefix="layerwise-recording-"))
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    if story is loop:
        plant(work)
    tape = Recording(home, work, delay)
    try:
        story(tape)
        tape.write(target / f"{name}.cast", title)
        return tape.seconds
    except TimeoutError:
        print(unfinished(home / ".local" / "state" / "layerwise"), file=sys.stderr)
        raise
    finally:
        tape.close()
        shutil.rmtree(folder, ignore_errors=True)


def main(words: list[str]) -> int:
    only = words[words.index("--only") + 1 :] if "--only" in words else [*TAPES]
    target = Path(words[0]) if words and not words[0].startswith("--") else ROOT / "docs" / "recordings"
    target.mkdir(parents=True, exist_ok=True)
    long = []
    for name in only:
        seconds = record(name, target)
        print(f"{name}: {seconds:.0f} s")
        long += [name] if seconds > MOST else []
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
