"""Write the transcript of an interactive bisection over a lost connection: docs/evidence/interactive_bisect.txt.

    python docs/make_transcript.py [FILE]

Everything is done by keys in tmux, as a person would: the app opens on a model with a planted fault, asks, is answered,
once wrongly, which is undone; then app and terminal are killed. `layerwise attach` goes on elsewhere, the app opens
again with what was found and writes a bundle, whose script is run in a new virtual environment with numpy and
onnxruntime alone. Needs tmux and a package index.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "evidence" / "interactive_bisect.txt"
COLUMNS, ROWS, FAULT = 100, 30, "/encoder/layer.4/intermediate/dense/MatMul"
PROMPT = "[p]ass or [f]ail?"
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

from layerwise._tool.surgery.demo import make_demo  # noqa: E402


class Terminal:
    """A shell in a tmux server of its own; screens are written to `log` as they are taken."""

    def __init__(self, name: str, folder: Path, log: list[str]) -> None:
        self._tmux = ["tmux", "-L", f"layerwise-{name}-{os.getpid()}", "-f", "/dev/null"]
        self._log, self._folder = log, folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        shell = f"env -i PATH={path} HOME={folder} TERM=$TERM LC_ALL=C.UTF-8 PS1='$ ' LAYERWISE_HOME={folder}/home"
        shell += " PIP_DISABLE_PIP_VERSION_CHECK=1 bash"
        command = f"cd {folder}; {shell} --norc --noprofile"
        self._run("new-session", "-d", "-x", str(COLUMNS), "-y", str(ROWS), "-s", "w", command)
        self.wait(lambda text: "$" in text)

    def _run(self, *arguments: str) -> str:
        done = subprocess.run([*self._tmux, *arguments], capture_output=True, text=True, check=True)
        return done.stdout

    @property
    def text(self) -> str:
        return self._run("capture-pane", "-p", "-t", "w").rstrip()

    @property
    def history(self) -> str:
        """The screen and what has scrolled off it, long lines whole."""
        return self._run("capture-pane", "-p", "-J", "-S", "-", "-t", "w")

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "w", *keys)

    def type(self, line: str) -> None:
        """A command line for the shell, on a clear screen."""
        self.press("C-l")
        self._run("send-keys", "-t", "w", "-l", line)
        self.press("Enter")

    def wait(self, seen: str | Callable[[str], object], seconds: float = 120.0) -> None:
        """Wait for a state of the screen."""
        holds = seen if callable(seen) else lambda text: seen in text
        deadline = time.monotonic() + seconds
        while not holds(self.text):
            if time.monotonic() > deadline:
                raise TimeoutError(self.text)
            time.sleep(0.1)

    def take(self, title: str) -> None:
        """Write the screen to the transcript, once it has come to rest."""
        before = ""
        while before != self.text:
            before = self.text
            time.sleep(0.4)
        print(title)
        shown = before.replace(str(self._folder), "/tmp/case").replace(sys.executable, "python3")
        self._log.append(f"===== {title} =====\n\n{shown}\n")

    def kill(self) -> None:
        """Kill the app and the terminal, as a lost host does: nothing gets the chance to tidy up."""
        shell = int(self._run("list-panes", "-t", "w", "-F", "#{pane_pid}"))
        for process in children(shell):
            os.kill(process, 9)
        self.close()

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


def children(process: int) -> list[int]:
    """What the shell of a pane runs."""
    found = subprocess.run(["pgrep", "-P", str(process)], capture_output=True, text=True, check=False).stdout.split()
    below = [child for number in found for child in children(int(number))]
    return [*below, *map(int, found)]


def question(text: str) -> int:
    found = re.search(r"question (\d+).*waiting for you since", text)
    return int(found[1]) if found else 0


def suggestion(text: str) -> str:
    """What the machine measured: the person here agrees with it, but for one slip."""
    found = re.findall(r"(?:suggests|finds it)\s+(good|bad)", text)
    if not found:
        raise LookupError(text)
    return str(found[-1])


def answer(terminal: Terminal, word: str) -> None:
    number = question(terminal.text)
    terminal.press(word[0])
    terminal.wait(lambda text: question(text) == number + 1 and "answers" in text)


def by_hand(terminal: Terminal) -> None:
    """The first half, in the app; it ends with the connection."""
    terminal.type("layerwise run bad.onnx --onnxrt --reference-model good.onnx --load-inputs inputs.json | tail -n 4")
    terminal.wait("FAILED | Runtime")
    terminal.take("The outputs differ")
    terminal.type("layerwise bad.onnx")
    terminal.wait("[1 Graph]")
    terminal.press("4")
    terminal.wait("No search yet. On:")
    terminal.take("The app, key 4: Debug")
    terminal.press("I")
    terminal.wait(lambda text: question(text) == 1 and "answers" in text)
    terminal.take("Key I: bisect by hand. The first question")
    answer(terminal, suggestion(terminal.text))
    terminal.take(f"Answered as measured: {suggestion_taken(terminal)}")
    slip = {"good": "bad", "bad": "good"}[suggestion(terminal.text)]
    answer(terminal, slip)
    terminal.take(f"A slip: {slip[0]} ({slip}), against what was measured")
    terminal.press("u")
    terminal.wait(lambda text: "undone" in text and question(text) == 2 and "answers" in text)
    terminal.take("Key u: the slip is undone, the question is asked again")
    terminal.kill()


def suggestion_taken(terminal: Terminal) -> str:
    found = re.search(r"2 . (good|bad) ", terminal.text)
    return f"{found[1][0]} ({found[1]})" if found else ""


def attached(terminal: Terminal) -> None:
    """The second half, elsewhere."""
    terminal.type("layerwise jobs")
    terminal.wait("waiting")
    terminal.take("App and terminal were killed (SIGKILL). Another login: the search waits")
    terminal.type("layerwise attach 3")
    terminal.wait(lambda _: PROMPT in terminal.history)
    terminal.take("layerwise attach 3: the same question")
    asked = terminal.history.count(PROMPT)
    while "Job 3: done" not in terminal.history:
        terminal.press(suggestion(terminal.history)[0], "Enter")
        asked += 1
        terminal.wait(lambda _, n=asked: terminal.history.count(PROMPT) == n or "Job 3: done" in terminal.history)
    terminal.take("Answered to the end")


def bundled(terminal: Terminal, folder: Path) -> None:
    terminal.type("layerwise bad.onnx")
    terminal.wait("One culprit")
    terminal.take("The app again: what was found")
    terminal.press(":", "bundle bug", "Enter")
    terminal.wait("bundle written")
    terminal.take("B or :bundle bug")
    terminal.press("q")
    terminal.wait(lambda text: text.rstrip().endswith("$"))
    terminal.type(f"{sys.executable} -m venv clean && clean/bin/pip install -q numpy onnxruntime && clean/bin/pip list")
    terminal.wait(lambda text: "onnxruntime" in text.partition("Version")[2] and text.rstrip().endswith("$"))
    terminal.take("A new virtual environment with numpy and onnxruntime alone")
    terminal.type("cd bug; ls; env -i ../clean/bin/python repro.py; echo exit code $?")
    terminal.wait(lambda text: re.search(r"exit code \d", text))
    terminal.take("The bundle fails on its own, without anything of layerwise")
    if "exit code 1" not in terminal.text:
        raise SystemExit("the bundle does not show the fault")


def plant(folder: Path) -> None:
    """good.onnx, and bad.onnx with one weight off by 2 %."""
    paths = make_demo(folder / "demo")
    shutil.copy(paths.inputs, folder / "inputs.json")
    model = onnx.load(paths.fp32)
    onnx.save(model, folder / "good.onnx")
    names = {tensor.name: tensor for tensor in model.graph.initializer}
    node = next(node for node in model.graph.node if node.name == FAULT)
    weight = names[node.input[1]]
    weight.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(weight) * np.float32(1.02), weight.name))
    onnx.save(model, folder / "bad.onnx")


def main(target: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="layerwise-transcript-"))
    title = "An interactive bisection over a lost connection: python docs/make_transcript.py"
    log = [f"{title}\nPlanted: {FAULT}, 2 % off\n"]
    open_terminals: list[Terminal] = []
    try:
        plant(folder)
        for name, part in (("first", by_hand), ("second", attached), ("third", lambda t: bundled(t, folder))):
            open_terminals.append(Terminal(name, folder, log))
            part(open_terminals[-1])
        target.write_text("\n".join(log) + "\n", encoding="utf-8")
    finally:
        for terminal in open_terminals:
            terminal.close()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
