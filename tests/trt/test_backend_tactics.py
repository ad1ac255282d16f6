"""Tactics recorded and replayed: a selector and Polygraphy's JSON on 10, the editable timing cache on 11."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trt.backend_model import SETUP

RunIn = Callable[..., str]


@pytest.fixture
def run(in_fake: RunIn, tmp_path: Path) -> Callable[[str], str]:
    root = str(Path(__file__).parents[2])

    def go(source: str) -> str:
        path = f"import sys; sys.path.insert(0, {root!r})\n"
        return in_fake(path + SETUP + source, LAYERWISE_HOME=str(tmp_path / "home"))

    return go


def test_a_replay_gives_the_same_tactics_again(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
from tensorrt._plan import from_bytes
def tactics(**options):
    layers = from_bytes(build_engine(model, TrtOptions(**options)).data).header["layers"]
    return [layer["tactic"] for layer in layers]
model = conv(2)
first = tactics(save_tactics="replay")
print(all(tactics(load_tactics="replay") == first for _ in range(6)))
print(len({str(tactics(fresh=True)) for _ in range(12)}) > 1)
print(open("replay", "rb").read(11))
open("bad", "w").write("{}")
print(error_of(lambda: tactics(load_tactics="bad")))
print(error_of(lambda: tactics(exclude_tactics="replay")))
""").splitlines()
    assert said[:2] == ["True", "True"]
    assert said[3].startswith("BadFile: bad: not a t")
    if trt_version == 10:
        assert said[4] == "no error"
    else:
        assert said[2] == "b'LWFAKECACHE'" and "TensorRT 10 only" in said[4]


def test_excluded_tactics_are_not_used(run: Callable[[str], str], trt_version: int) -> None:
    if trt_version == 11:
        return
    said = run("""
from tensorrt._plan import from_bytes
model = conv(2)
def tactics(**options):
    layers = from_bytes(build_engine(model, TrtOptions(**options)).data).header["layers"]
    return [layer["tactic"] for layer in layers]
bad = tactics(save_tactics="bad.json")
print([any(a == b for a, b in zip(tactics(exclude_tactics="bad.json"), bad)) for _ in range(5)])
from debugtools.tactics import load_replay
print(len(load_replay("bad.json").layers))
""").splitlines()
    assert said[0] == str([False] * 5)
    assert said[1] == "2"
