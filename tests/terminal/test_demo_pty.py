"""`layerwise demo`, the newcomer's first command: the app on a terminal, the layer table elsewhere."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

from support.terminal import Terminal

from layerwise._tool import VERSION
from layerwise._tool.surgery.demo import TROUBLE

DEMO = [sys.executable, "-m", "layerwise", "demo"]


def test_without_a_terminal_it_names_exactly_the_layers_that_lose_accuracy(workspace: Path) -> None:
    for other in ("", "0.0.1"):  # models that another version has made
        (workspace / "cache" / "demo" / other).mkdir(parents=True, exist_ok=True)
        for name in ("encoder_fp16.onnx", "encoder_fp32.onnx", "inputs.json"):
            (workspace / "cache" / "demo" / other / name).write_text("another version's")
    done = subprocess.run(DEMO, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL)
    named = done.stdout.split("lose accuracy by themselves:\n")[1].split("\n\n")[0].splitlines()
    assert [line.split(":")[0].split()[-1] for line in named] == list(TROUBLE)
    assert "411 tensors compared" in done.stdout


def test_on_a_terminal_the_app_shows_the_comparison(workspace: Path) -> None:
    with Terminal(DEMO, env={"LAYERWISE_HOME": str(workspace)}) as terminal:
        terminal.wait_for("done: 411 rows", 30)
        terminal.wait_for("1,097 nodes")
        assert "cosine at least 0.997" in terminal.text
        terminal.press("f")
        terminal.wait_for(lambda text: any(line.startswith("▌ ✗   454 Softmax") for line in text.splitlines()))
        terminal.press("o")
        terminal.wait_for("▸ Softmax #454 ◂")
        terminal.wait_for(lambda text: re.search(r"▌ *454 Softmax .*8.4e-02 ✗", text) is not None)
        terminal.resize(180, 50)
        path = re.compile(r"in +Div #451 .* ok\n.*here +Softmax #454 +8.4e-02  leap\n.*out +MatMul #457")
        terminal.wait_for(lambda text: path.search(text) is not None)
        terminal.wait_for("2 onnxruntime cpu, encoder_fp32.onnx")
        assert re.search(r"ampl 3[45]\d", terminal.text)  # further digits are the processor's
        terminal.until_silent()
        assert median(terminal.cost("j") for _ in range(10)) <= 1_500
        terminal.press("3")
        terminal.wait_for("index /")
        terminal.press("G")
        terminal.wait_for("686 tensors without counterpart (layerwise jobs show 1 --json lists them)")
        terminal.press("2", "q")
        assert terminal.exit_code() == 0
    with Terminal([*DEMO[:-1], str(workspace / "cache/demo" / VERSION / "encoder_fp16.onnx")]) as terminal:
        terminal.wait_for("done: 411 rows", 30)
        terminal.wait_for("1,097 nodes")
