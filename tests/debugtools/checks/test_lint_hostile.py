"""Damaged models through the linter: findings or an error in words, whatever onnxruntime makes of them.

The loop runs in a process of its own, as every job does: native code that dies takes that one model's verdict along.
"""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from support import bad_models, models

ROOT = Path(__file__).parents[3]
COUNT = 300
MAKERS = (
    *(models.mlp, models.conv_net, models.if_model, models.loop_model, models.scan_model, models.sequence_model),
    *(models.dynamic_model, models.function_model, models.bf16_model, models.string_model),
    *(bad_models.several, bad_models.bad_body, bad_models.old_ir, bad_models.custom_op),
)
_LOOP = """
import resource, sys, time
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
from layerwise._tool.backends.errors import LayerwiseError
from support.linting import lint_file
for path in map(Path, sys.argv[3:]):
    print(path.stem, "starts", flush=True)
    started = time.process_time()
    try:
        result, report = lint_file(path)
        assert result["passed"] or report["lint_entries"], "failed without a finding"
        outcome = "passed" if result["passed"] else "findings"
    except LayerwiseError as error:
        assert str(error).isprintable(), error
        outcome = "refused"
    except MemoryError:
        outcome = "memory"
    assert time.process_time() - started < 20
    print(path.stem, outcome, flush=True)
"""


def damaged(data: bytes, pick: random.Random) -> bytes:
    """Flip, drop, insert or repeat a few bytes."""
    text = bytearray(data)
    for _ in range(pick.choice([1, 1, 2, 5])):
        at = pick.randrange(len(text))
        kind = pick.randrange(4)
        if kind == 0:
            text[at] ^= 1 << pick.randrange(8)
        elif kind == 1:
            del text[at : at + pick.randint(1, 20)]
        elif kind == 2:
            text[at:at] = pick.randbytes(pick.randint(1, 8))
        else:
            text[at:at] = text[at : at + pick.randint(1, 64)]
    return bytes(text) or b"x"


@pytest.mark.timeout(400)
def test_damaged_models_give_findings_or_an_error_in_words(tmp_path: Path) -> None:
    pick = random.Random(20_263)
    originals = [make().SerializeToString() for make in MAKERS]
    paths = [tmp_path / f"damaged_{number}.onnx" for number in range(COUNT)]
    for path in paths:
        path.write_bytes(damaged(pick.choice(originals), pick))
    outcomes: dict[str, str] = {}
    left = paths
    while left:
        command = [sys.executable, "-c", _LOOP, str(ROOT / ".editable"), str(ROOT / "tests"), *map(str, left)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, cwd=tmp_path)
        last = dict(line.split() for line in done.stdout.splitlines() if line.startswith("damaged_"))
        outcomes |= last
        assert done.returncode <= 0, done.stderr[-3000:]
        left = [path for path in paths if path.stem not in outcomes]
    assert len(outcomes) == COUNT
    died = [name for name, outcome in outcomes.items() if outcome == "starts"]
    assert len(died) < COUNT / 20, died
    assert {"passed", "findings"} <= set(outcomes.values())
