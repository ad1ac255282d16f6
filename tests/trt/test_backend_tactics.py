"""Tactics recorded, replayed, edited and excluded: a selector and Polygraphy's JSON on 10, the editable cache on 11."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from layerwise._tool.backends.trt.tactics.over_cache import Autotuning
from layerwise._tool.backends.trt.tactics.record import Offer, Op, TacticRecord, decode_record, save_record
from layerwise._tool.debugtools.diff.action import diff_files
from layerwise._tool.debugtools.diff.spec import DiffSpec
from layerwise._tool.debugtools.engines.tactics import load_replay, load_replays, potentially_bad

RunIn = Callable[..., str]
TACTICS = """
from pathlib import Path
from tensorrt._plan import from_bytes
model = conv(2)
def tactics(**options):
    layers = from_bytes(build_engine(model, TrtOptions(**options)).data).header["layers"]
    return [layer["tactic"] for layer in layers]
"""
LOG = """
Autotuning op matMul1(key: 0x1814870C44ff0f8574df6e3dda04cbd7):
Sorted table of all evaluated tactics:
tactic_id, cost(in ms), cost/fastest_cost, prediction_correlation, kernel_name, tactic_hash, tunable_parameter
   3, 0.0112640, 1.00000, 0.50673, sm80_xmma_gemm_f32f32_tensor16x8x8, 0x665ded9abbf88,
   5, 0.0118784, 1.05455, 0.51157, sm80_xmma_gemm_stage4_tensor16x8x8, 0x393e4ef8ad243,
   6, nan, nan, 0.5, sm80_broken, 0x2ad3a182fb05c,
The selected tactic is (tactic hash, cost(in ms)):0x665ded9abbf88,  0.011264
Writing the best tactic (0x665ded9abbf88) to cache
Autotuning op a(b) + c(key: 0xb222b0832016f1115ff61116c094875a):
kernel_name, tactic_hash, cost(in ms)
one, 0x1, 0.5
The selected tactic is (tactic hash, cost(in ms)):0x1, 0.5
"""


@pytest.fixture
def run(scenario: RunIn) -> Callable[[str], str]:
    return lambda source: scenario(TACTICS + source)


def test_nvidias_sample_log_is_parsed_in_one_or_many_messages() -> None:
    whole, lines = Autotuning(), Autotuning()
    whole.hear(LOG)
    for line in LOG.splitlines():
        lines.hear(line)
    assert whole.ops == lines.ops
    matmul, other = whole.ops["0x1814870c44ff0f8574df6e3dda04cbd7"], whole.ops["0xb222b0832016f1115ff61116c094875a"]
    assert (matmul.name, matmul.tactic, matmul.kernel) == (
        "matMul1", "0x665ded9abbf88", "sm80_xmma_gemm_f32f32_tensor16x8x8",
    )  # fmt: skip
    assert [offer.tactic for offer in matmul.offered] == ["0x665ded9abbf88", "0x393e4ef8ad243", "0x2ad3a182fb05c"]
    assert [offer.milliseconds is None for offer in matmul.offered] == [False, False, True]
    assert (other.name, other.tactic, other.offered[0].milliseconds) == ("a(b) + c", "0x1", 0.5)


@given(st.lists(st.one_of(st.text(), st.sampled_from(LOG.splitlines())), max_size=30))
def test_any_log_is_parsed_without_errors(messages: list[str]) -> None:
    heard = Autotuning()
    for message in messages:
        heard.hear(message)
    assert all(op.tactic.startswith("0x") for op in heard.ops.values())


def record(path: Path, *tactics: str) -> Path:
    """A record of operations of one name, with these tactics."""
    names = ["same", "same", "\x1b[31mred", "other"]
    ops = {f"0x{at:032x}": Op(name=name, tactic=tactic, offered=[Offer(tactic=tactic, kernel="k" * at)])
           for at, (name, tactic) in enumerate(zip(names, tactics, strict=False))}  # fmt: skip
    save_record(TacticRecord(layerwise="tactics", tensorrt="11.4.0.106", ops=ops, cache=b"\0cache"), path)
    return path


def test_records_are_displayed_and_compared_without_tensorrt(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.mkdir(), bad.mkdir()
    first, second = record(good / "0.json", "0x1", "0x2", "0x3"), record(bad / "0.json", "0x1", "0x7", "0x3", "0x5")
    lines = list(load_replay(first).lines())
    assert lines[:2] == [f"Layer: same (0x{0:032x})", "    Algorithm: (Tactic: 0x1, Kernel: not named)"]
    assert lines[3:5] == ["    Algorithm: (Tactic: 0x2, Kernel: k)", "Layer: \x1b[31mred"]
    outcome = diff_files(DiffSpec(a=str(first), b=str(second)))
    assert outcome.kind == "tactics" and not outcome.equal
    text = "\n".join(outcome.lines(None))
    assert "(Tactic: 0x2, Kernel: k) → (Tactic: 0x7, Kernel: k)" in text and "layers only in the second: 1" in text
    (loaded, _, skipped), (others, read, _) = load_replays(good), load_replays(bad)
    assert (len(read), skipped) == (1, [])
    assert list(potentially_bad(loaded, others)) == [f"same (0x{1:032x})", "other"]
    assert decode_record(first.read_bytes()) == decode_record(record(tmp_path / "c", "0x1", "0x2", "0x3").read_bytes())


@given(st.binary(max_size=200))
def test_any_bytes_decode_to_a_record_or_none(data: bytes) -> None:
    assert decode_record(data) is None
    assert decode_record(b'{"layerwise": "tactics", "ops": ' + data + b"}") in (None, TacticRecord(layerwise="tactics"))


def test_a_replay_reproduces_the_tactics(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
first = tactics(save_tactics="replay")
print(all(tactics(load_tactics="replay") == first for _ in range(6)))
print(len({str(tactics(fresh=True)) for _ in range(12)}) > 1)
first = tactics(save_timing_cache="cache")
print(all(tactics(load_tactics="cache", fresh=True) == first for _ in range(3)))
print(sorted(json.load(open("replay"))))
for text in ("{}", "[1]", '{"layerwise": "tactics", "ops": {"0x1": {"name": "a", "tactic": "0x1"}}}', "nonsense"):
    open("bad", "w").write(text)
    print(error_of(lambda: tactics(load_tactics="bad")))
print(error_of(lambda: tactics(load_tactics="nowhere")))
""").splitlines()
    assert said[:3] == ["True", "True", "True"]
    kinds = {10: "['polygraphy_class', 'replay']", 11: "['cache', 'layerwise', 'ops', 'tensorrt']"}
    assert said[3] == kinds[trt_version]
    assert all(line.startswith("BadFile: bad: not a tactic replay") for line in said[4:8])
    assert said[8] == "BadFile: nowhere: No such file or directory"


def test_excluded_tactics_are_not_used(run: Callable[[str], str]) -> None:
    said = run("""
bad = tactics(save_tactics="bad.json")
print([any(a == b for a, b in zip(tactics(exclude_tactics="bad.json"), bad)) for _ in range(5)])
from layerwise._tool.debugtools.engines.tactics import load_replay
print(sorted(load_replay("bad.json").layers))
""").splitlines()
    assert said == [str([False] * 5), "['conv', 'relu']"]


def test_a_manually_edited_record_is_obeyed(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
tactics(save_tactics="t.json")
found = json.load(open("t.json"))
for entry in (found.get("ops") or found["replay"]).values():
    entry["tactic"] = entry["offered"][2]["tactic"] if "offered" in entry else entry["tactic"]
json.dump(found, open("t.json", "w"))
had = tactics(load_tactics="t.json", save_tactics="again.json")
print("ops" not in found or had == [int(op["tactic"], 16) for op in found["ops"].values()])
again = json.load(open("again.json"))
print(again.get("ops") == found.get("ops"))
entry["tactic"] = "0x77" if "offered" in entry else 77
json.dump(found, open("t.json", "w"))
print(error_of(lambda: tactics(load_tactics="t.json")))
""").splitlines()
    assert said[:2] == ["True", "True"]
    reasons = {10: "layer relu: its recorded tactic is not among those", 11: "Could not find any implementation for"}
    assert reasons[trt_version] in said[2]


def test_a_selectors_recording_requires_a_selector(run: Callable[[str], str], trt_version: int) -> None:
    said = run("""
entry = {"implementation": 1, "tactic": 2, "inputs": [], "outputs": []}
json.dump({"replay": {"conv": entry}}, open("old.json", "w"))
print(error_of(lambda: tactics(load_tactics="old.json")))
print(error_of(lambda: tactics(exclude_tactics="old.json")))
""").splitlines()
    if trt_version == 11:
        assert all(line.startswith("UsageError: --") and "TensorRT 10 only" in line for line in said)
    else:
        assert "not among those that TensorRT offers" in said[0] and said[1] == "no error"
