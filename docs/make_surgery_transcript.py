"""Write the nine families of onnx-graphsurgeon's examples done by keys: docs/evidence/surgery_by_keys.txt.

    python docs/make_surgery_transcript.py [FILE]

Each is done in the real app in a pseudo-terminal, by `layerwise surgeon edit`, and by the script that the app exports;
the three models are compared and run on onnxruntime. Ends with 1 where they differ.
"""

import shlex
import shutil
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "evidence" / "surgery_by_keys.txt"
ROUNDING = 1e-5
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import onnx  # noqa: E402
from support.edit_models import described  # noqa: E402
from support.surgery_families import CLEAR, FAMILIES, Family, Step  # noqa: E402
from support.surgery_ways import Ways, by_command, moved, outputs, three_ways, wrong_ops  # noqa: E402


class Transcript:
    """Lines, with the temporary folder as /tmp/case."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines += [line.replace(self._folder, "/tmp/case").rstrip() for line in lines]

    def step(self, step: Step, screen: str) -> None:
        """What was pressed and, if asked for, the screen that it led to."""
        keys = "  ".join("ctrl+u" if key == CLEAR else key for key in step.keys)
        then = "; enter makes it" if step.change else ""
        self.say(f"pressed: {keys}{then}")
        if "--screens" in sys.argv:
            self.say("", *(f"  | {line}" for line in screen.rstrip().splitlines()), "")


def tell(log: Transcript, name: str, family: Family, ways: Ways) -> bool:
    """Say what the three ways made; returns whether it is the same and the outputs are as they should be."""
    log.say("", f"by command: layerwise surgeon edit {ways.base} {shlex.join(family.words)} -o by_command.onnx")
    log.say(f"by script:  python edits.py {ways.base} by_script.onnx")
    for way in ("base", "keys", "command", "script"):
        path = getattr(ways, way)
        digest = sha256(path.read_bytes()).hexdigest()[:16]
        log.say(f"  {way:<8} {len(onnx.load(path).graph.node):>4} nodes  {path.stat().st_size:>8} bytes  {digest}")
    wrong = [*ways.differences(), *(f"{count} {op}" for op, count in wrong_ops(family, ways.keys).items())]
    log.say(f"  {'; '.join(wrong) or 'keys and command: the same bytes; keys and script: the same, node for node'}")
    wrong += told_outputs(log, family, ways)
    if family.new:
        wrong += from_nothing(log, family, ways)
    print(f"{name}: {'; '.join(wrong) or 'the same by all three ways'}", flush=True)
    return not wrong


def told_outputs(log: Transcript, family: Family, ways: Ways) -> list[str]:
    """How far the outputs on onnxruntime lie from one another, and from the base model's where they should stay."""
    found = outputs(family, ways)
    apart = moved({way: found[way] for way in ("keys", "command", "script")}, "keys")
    log.say("  outputs against those by keys: " + ", ".join(f"{way} {far:.3g}" for way, far in apart.items()))
    if family.same:
        far = moved(found, "base")
        log.say("  outputs against the base model's: " + ", ".join(f"{way} {d:.3g}" for way, d in far.items()))
        apart |= {f"{way} against base": distance for way, distance in far.items()}
    return [f"outputs differ: {way} {far:.3g}" for way, far in apart.items() if not far <= ROUNDING]


def from_nothing(log: Transcript, family: Family, ways: Ways) -> list[str]:
    """The command line without a model gives the same nodes as what was grown."""
    made = by_command(family.new, None, ways.base.with_name("new.onnx"))
    anew, grown = (described(onnx.load(path)) for path in (made, ways.keys))
    log.say("", f"from nothing: layerwise surgeon edit {shlex.join(family.new)} -o new.onnx")
    differs = {key for key in anew if anew[key] != grown[key]} - {"ir"}
    log.say(f"  {'differs: ' + ', '.join(differs) if differs else 'the same as by keys, node for node'}")
    return [f"from nothing: another {key}" for key in differs]


def main(target: Path) -> int:
    folder = Path(tempfile.mkdtemp(prefix="layerwise-surgery-"))
    log = Transcript(folder)
    log.say("onnx-graphsurgeon's nine example families by keys, by command and by script, on the demo's transformer")
    log.say("written by: python docs/make_surgery_transcript.py")
    try:
        good = []
        for number, (name, family) in enumerate(FAMILIES.items(), 1):
            log.say("", f"===== {number}. {name} =====", "", family.what)
            place = folder / str(number)
            place.mkdir()
            good.append(tell(log, name, family, three_ways(family, place, log.step)))
        log.say("", f"{sum(good)} of {len(good)} families are the same by all three ways")
        target.write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(next((Path(word) for word in sys.argv[1:] if word != "--screens"), TARGET)))
