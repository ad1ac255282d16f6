"""Which tensors of two exports belong together: listed on the Errors screen, corrected there, and kept."""

from pathlib import Path

import msgspec
from support.bench import Bench, with_bench
from support.comparing import ORT
from support.two_exports import first, second

from layerwise._tool.debugtools.compare.spec import CompareSpec, MarkSpec


def test_a_pair_is_corrected_and_kept_for_later_runs(tmp_path: Path) -> None:
    for name, model in (("mine", first()), ("theirs", second())):
        (tmp_path / f"{name}.onnx").write_bytes(model.SerializeToString())
    runners = [ORT, msgspec.structs.replace(ORT, model=str(tmp_path / "theirs.onnx"))]
    spec = CompareSpec(model=str(tmp_path / "mine.onnx"), runners=runners, marks=MarkSpec(everything=True))

    async def story(bench: Bench) -> None:
        await bench.compare(spec)
        await bench.press("2")
        await bench.see("done: 11 rows")
        await bench.press("equals_sign")
        await bench.see("12 tensors paired, 2 without counterpart", "normed", "certain", "no counterpart")
        await bench.press(*"soft value", "enter")
        await bench.see("What is soft in the other model?")
        await bench.press(*"17", "enter")
        await bench.see("soft is 17: kept for these two models")
        errors = bench.app.state.errors
        await bench.compare(spec)
        await bench.until(lambda: errors.facts.state == "done" and "soft" in errors.table.tensors)
        assert errors.table.row(errors.table.tensors.index("soft")).tensor2 == "17"

    with_bench(tmp_path / "mine.onnx", story)
