"""Users' scripts that hang, eat all memory or crash: each ends with its own card, which says how to do it again."""

import json
from pathlib import Path

import onnx
import pytest
from support.cli import layerwise
from support.models import mlp

_SCRIPTS = {
    "hang": "import time\ntime.sleep(1000)",
    "eat": "held = []\nwhile True: held.append(bytes(1 << 28))",
    "fault": "import ctypes\nctypes.string_at(0)",
    "raise": "raise RuntimeError('no such image')",
}


def _limit() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))


@pytest.mark.parametrize(
    ("script", "options", "kind", "summary"),
    [
        ("hang", ["--timeout", "3"], "timeout", "ran longer than its timeout"),
        ("eat", [], "oom", "memory ran out"),
        ("fault", [], "signal", "SIGSEGV"),
        ("raise", [], "error", "line 2, in load_data: RuntimeError: no such image"),
    ],
)
def test_a_script_gone_wrong_has_its_card(
    tmp_path: Path, script: str, options: list[str], kind: str, summary: str
) -> None:
    onnx.save(mlp(), tmp_path / "m.onnx")
    body = _SCRIPTS[script].replace("\n", "\n    ")
    (tmp_path / "load.py").write_text(f"def load_data():\n    {body}\n    yield {{}}\n")
    limit = {"preexec_fn": _limit} if script == "eat" else {}
    done = layerwise(
        "run", "m.onnx", "--onnxrt", "--data-loader-script", "load.py", *options, "--json", cwd=tmp_path, **limit
    )
    card = json.loads(done.stdout)["error"]
    assert (done.returncode, card["kind"]) == (1, kind)
    assert summary in card["summary"]
    assert card["last_event"]["type"] == "state"
    for word in options:
        assert word in card["command"]
