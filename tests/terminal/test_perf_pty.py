"""The Perf screen in the real program on a terminal: a bench started there, few bytes, none at rest."""

import re
from pathlib import Path
from statistics import median

import onnx
import pytest
from support.bench import chain_pair
from support.terminal import Terminal, app

LAYERS = 60
HOSTILE = "/layer.1/\x1b[31mred\x07[bold]Tanh"


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of layers, one with an escape sequence in its name."""
    path = chain_pair(tmp_path_factory.mktemp("models"), LAYERS)[0]
    model = onnx.load(path)
    next(node for node in model.graph.node if node.name == "/layer.1/Tanh").name = HOSTILE
    onnx.save(model, path)
    return path


def bench(terminal: Terminal) -> None:
    """Start a quick bench from the Perf screen and wait for its layers."""
    terminal.wait_for(f"{2 * LAYERS} nodes")
    terminal.press("6")
    terminal.wait_for("no bench of this model yet")
    terminal.press(":bench --warmUp=0 --duration=0 --iterations=20 --threads 1")
    terminal.press("enter")
    terminal.wait_for(f"done: {2 * LAYERS} layers", 60)


def test_a_bench_from_its_start_to_the_operator_in_the_graph(chain: Path) -> None:
    with app(chain, columns=120, rows=40) as terminal:
        bench(terminal)
        terminal.wait_for(lambda text: re.search(r"median \S+ ms +p90 \S+ +p95 \S+ +p99 \S+", text) is not None)
        assert terminal.is_idle(1.0)
        assert 0 < median(terminal.cost("j") for _ in range(7)) <= 500
        row = next(line for line in terminal.text.splitlines() if line.startswith("▌"))
        place = row.split()[1]
        terminal.press("o")
        terminal.wait_for(lambda text: "[1 Graph]" in text and re.search(rf"▌ +{place} ", text) is not None)
        terminal.press("6")
        terminal.wait_for("[6 Perf]")
        terminal.wait_for(lambda text: re.search(rf"▌ +{place} ", text) is not None)
        terminal.press("/red")
        terminal.press("enter")
        terminal.wait_for(f"1 of {2 * LAYERS}")
        terminal.wait_for(r"layer /layer.1/\x1b[31mred\x07[bold]Tanh")
        assert b"\x1b[31mred" not in terminal.raw


def test_without_colour_and_without_unicode(chain: Path) -> None:
    with app(chain, columns=80, rows=24, env={"NO_COLOR": "1", "LAYERWISE_ASCII": "1"}) as terminal:
        bench(terminal)
        terminal.wait_for("##")
        assert terminal.text.isascii()
