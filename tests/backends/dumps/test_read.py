"""Dumps of other programs: which tensor, iteration and rank the files of a folder or an archive are."""

import io
import json
import mmap
import sys
import tarfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from support.torch_pickles import a_dict, tensor, text, torch_file

from layerwise._tool.backends.arrays import Array
from layerwise._tool.backends.dumps.dump import Dump
from layerwise._tool.backends.dumps.opening import open_results
from layerwise._tool.backends.dumps.ranks import Unclear
from layerwise._tool.backends.dumps.read import read_dump
from layerwise._tool.backends.dumps.rule import parse_rule, rule_words
from layerwise._tool.backends.errors import BadFile, UsageError
from layerwise._tool.backends.results.inference import StoredOutputs
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import DumpRule, RunnerSpec

FLOAT = np.arange(6, dtype=np.float32).reshape(2, 3)
CASTS: list[Any] = [np.float32, np.float16, ml_dtypes.bfloat16, np.int64, np.bool_, np.complex64]


def npy(array: Array) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(arrays: Mapping[str, Array], packed: bool = False) -> bytes:
    stream = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def pt(names: Mapping[str, int]) -> bytes:
    items = [(text(name), tensor("0", "FloatStorage", [1], [1], 2, place)) for name, place in names.items()]
    return torch_file(a_dict(items), {"0": np.arange(2, dtype=np.float32).tobytes()})


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def names(dump: Dump) -> list[list[str]]:
    return [list(iteration.outputs) for iteration in dump.results[0]]


ONE = npy(FLOAT)


@pytest.mark.parametrize("files, expected", [
    (["a.npy", "b.npy"], [["a", "b"]]),
    (["10/a.npy", "9/a.npy"], [["a"], ["a"]]),
    (["iter0/enc/a.npy", "iter1/enc/a.npy"], [["enc/a"], ["enc/a"]]),
    (["enc/a.npy", "b.npy"], [["b", "enc/a"]]),
    (["layer.1.npy", "layer.2.npy"], [["layer.1", "layer.2"]]),
    (["a_iter0.npy", "a_iter1.npy", "b_iter0.npy"], [["a", "b"], ["a"]]),
    (["out_0.npz", "out_1.npz"], [["p", "q"], ["p", "q"]]),
    (["all.npz"], [["p", "q"]]),
    (["layer0.npz", "layer1.npz"], [["layer0.p", "layer0.q", "layer1.p", "layer1.q"]]),
    (["step3/x.npz", "step4/x.npz"], [["p", "q"], ["p", "q"]]),
    (["attn.pt", "mlp.pt"], [["attn.u", "mlp.u"]]),
    (["rank0/a.npy", "rank1/a.npy"], [["a"]]),
    (["a.rank0.npy", "a.rank1.npy", "b.npy"], [["b", "a"]]),
    (["0/rank0/a.npy", "0/rank1/a.npy", "1/rank0/a.npy", "1/rank1/a.npy"], [["a"], ["a"]]),
    (["rank_0/iter_7/a.npy", "rank_1/iter_7/a.npy"], [["a"]]),
    (["a.rank0.npy"], [["a"]]),
])  # fmt: skip
def test_what_a_folder_looks_like_says_what_its_files_are(
    files: list[str], expected: list[list[str]], tmp_path: Path
) -> None:
    made = {".npy": ONE, ".npz": npz({"p": FLOAT, "q": FLOAT}), ".pt": pt({"u": 0})}
    dump = read_dump(write(tmp_path / "d", {file: made[Path(file).suffix] for file in files}), DumpRule())
    assert names(dump) == expected


@pytest.mark.parametrize("rule, files, expected", [
    (["iter{iteration}/{name}.npy", "__=/"], ["iter0/a__b.npy", "iter2/a__b.npy"], [["a/b"], ["a/b"]]),
    (["{name}@{iteration}.npy"], ["x@1.npy", "x@2.npy", "notes.npy"], [["x"], ["x"]]),
    (["*/{name}", ".=/", "%2F=:"], ["run/a.b%2Fc.npy"], [["a/b:c"]]),
    (["tp{rank}-{name}.npy"], ["tp0-x.npy", "tp1-x.npy"], [["x"]]),
    (["{iteration}/*"], ["0/x.npz", "1/x.npz"], [["p", "q"], ["p", "q"]]),
    (["{name}.npz"], ["s_0.npz", "s_1.npz"], [["s_0.p", "s_0.q", "s_1.p", "s_1.q"]]),
])  # fmt: skip
def test_a_rule_says_it_instead(rule: list[str], files: list[str], expected: list[list[str]], tmp_path: Path) -> None:
    made = {".npy": ONE, ".npz": npz({"p": FLOAT, "q": FLOAT})}
    folder = write(tmp_path / "d", {file: made[Path(file).suffix] for file in files})
    parsed = parse_rule(rule)
    assert parsed is not None and parse_rule(rule_words(parsed)) == parsed
    dump = read_dump(folder, parsed)
    assert names(dump) == expected
    assert any("were not read: notes.npy" in note for note in dump.notes) == ("notes.npy" in files)


def test_a_rule_may_be_in_a_file(tmp_path: Path) -> None:
    fields = {"pattern": "{name}.npy", "replace": {"__": "/"}, "layouts": {"a/*": "1,0"}, "types": {"b": "bfloat16"}}
    (tmp_path / "r.json").write_text(json.dumps(fields))
    rule = parse_rule([str(tmp_path / "r.json")])
    assert rule == DumpRule(
        pattern="{name}.npy", replace=[("__", "/")], layouts={"a/*": "1,0"}, types={"b": "bfloat16"}
    )
    if sys.version_info >= (3, 11):
        (tmp_path / "r.toml").write_text('pattern = "{name}.npy"\n[replace]\n"__" = "/"\n')
        assert parse_rule([str(tmp_path / "r.toml")]) == DumpRule(pattern="{name}.npy", replace=[("__", "/")])
    for wrong in ('{"pattern": 1}', '{"patterns": ""}', "[]", '{"layouts": {"a": "z"}}', '{"types": {"a": "f"}}', "{"):
        (tmp_path / "r.json").write_text(wrong)
        with pytest.raises((BadFile, UsageError)):
            parse_rule([str(tmp_path / "r.json")])
    for word in ("nothing", "{name}{name}", "a:1,z", "=x", "{name}" + "*" * 9):
        with pytest.raises(UsageError):
            parse_rule([word])


@pytest.mark.parametrize("kind", ["zip", "packed.zip", "tar", "tar.gz", "tgz"])
def test_archives_are_read_as_their_folder_is(kind: str, tmp_path: Path) -> None:
    files = {"a.npy": ONE, "b.npz": npz({"p": FLOAT}, packed=True), "c.pt": pt({"u": 1}), "d/e.npy": ONE}
    files["f.safetensors"] = safetensors.numpy.save({"s": FLOAT})
    folder, archive = write(tmp_path / "dump", files), tmp_path / f"d.{kind}"
    if kind.endswith("zip"):
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED if "packed" in kind else zipfile.ZIP_STORED) as opened:
            for name, data in files.items():
                opened.writestr(f"dump/{name}", data)
    else:
        with tarfile.open(archive, "w:gz" if kind != "tar" else "w") as tar:
            tar.add(folder, "dump")
    found, expected = (read_dump(path, DumpRule()).results[0][0].outputs for path in (archive, folder))
    assert list(found) == list(expected) == ["a", "b.p", "c.u", "d/e", "f.s"]
    for name in expected:
        assert found[name].dtype == expected[name].dtype and np.array_equal(found[name], expected[name]), name
    assert found["c.u"].tolist() == [1]


@pytest.mark.parametrize("dtype", [*CASTS, ml_dtypes.float8_e5m2], ids=str)
def test_types_are_those_that_were_written(dtype: Any, tmp_path: Path) -> None:
    array = FLOAT.astype(dtype)
    files = {"c.npy": npy(array), "f.npy": npy(np.asfortranarray(array)), "s.npy": npy(array[1, 1])}
    found = read_dump(write(tmp_path / "d", files), DumpRule()).results[0][0].outputs
    assert isinstance(found, StoredOutputs)
    for name, expected in (("c", array), ("f", array), ("s", array[1, 1])):
        assert found[name].dtype == array.dtype and np.array_equal(found[name], expected)
        assert found.stored[name].shape == expected.shape


def test_raw_elements_are_viewed_and_layouts_changed_as_the_rule_says(tmp_path: Path) -> None:
    half, eight = FLOAT.astype(ml_dtypes.bfloat16), FLOAT.astype(ml_dtypes.float8_e4m3fn)
    files = {"h.npy": npy(half.view(np.uint16)), "e.npy": npy(eight.view(np.uint8)), "v.npy": npy(eight), "t.npy": ONE}
    folder = write(tmp_path / "d", files)
    rule = parse_rule(["h:bfloat16", "[ev]:float8_e4m3fn", "t:1,0 1x-1"])
    assert rule is not None
    found = read_dump(folder, rule).results[0][0].outputs
    assert isinstance(found, StoredOutputs)
    assert found["h"].dtype == half.dtype and np.array_equal(found["h"], half)
    assert all(found[name].dtype == eight.dtype and np.array_equal(found[name], eight) for name in "ev")
    assert found.stored["t"].shape == (1, 6) and found["t"].tolist() == [[0, 3, 1, 4, 2, 5]]
    assert any("the type of v" in note for note in read_dump(folder, DumpRule()).notes)
    for word in ("t:0,0", "t:0,1,2", "t:4x-1", "t:5", "t:bfloat16"):
        wrong = parse_rule([word])
        assert wrong is not None
        with pytest.raises(UsageError, match=r"\bt\b"):
            read_dump(folder, wrong)


def test_pieces_are_joined_to_the_shape_of_the_counterpart(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((2, 4, 4)).astype(np.float32)
    pieces = {
        "axis": (left, right), "copy": (left, left), "part": (left, right), "near": (left, left * 1.001),
        "whole": (np.ones(2, bool), np.zeros(2, bool)), "odd": (left[:1], right[:2]),
    }  # fmt: skip
    files = {f"{name}.rank{rank}.npy": npy(each[rank]) for name, each in pieces.items() for rank in (0, 1)}
    files |= {"alone.rank1.npy": npy(left), "lost.rank0.npy": npy(left)}
    dump = read_dump(write(tmp_path / "d", files), DumpRule())
    outputs = dump.results[0][0].outputs
    with pytest.raises(Unclear, match="nothing says what shape"):
        outputs["axis"]
    dump.shapes |= {"axis": (4, 8), "copy": (4, 4), "part": (4, 4), "near": (4, 4), "whole": (2,), "odd": (3, 4)}
    dump.shapes |= {"alone": (4, 4), "lost": (8, 4)}
    assert np.array_equal(outputs["axis"], np.concatenate([left, right], 1))
    assert np.array_equal(outputs["copy"], left) and np.array_equal(outputs["alone"], left)
    assert np.array_equal(outputs["odd"], np.concatenate([left[:1], right[:2]]))
    assert np.array_equal(outputs["part"], (left.astype(np.float64) + right).astype(np.float32))
    assert dump.joined == {
        "axis": "concatenated along axis 1", "copy": "equal on all ranks", "alone": "from rank 1 alone",
        "odd": "concatenated along axis 0", "part": "summed over the ranks",
    }  # fmt: skip
    for name, words in (("near", "nearly equal"), ("whole", "no numbers that are summed"), ("lost", "ranks 0 only")):
        with pytest.raises(Unclear, match=words):
            outputs[name]
    dump.shapes["axis"] = (16, 2)
    with pytest.raises(Unclear, match="along any axis"):
        outputs["axis"]
    apart = read_dump(tmp_path / "d", DumpRule(), join=False).results[0][0].outputs
    assert {"axis.rank0", "axis.rank1", "lost.rank0"} <= set(apart)


def test_saved_results_are_told_from_dumps(tmp_path: Path) -> None:
    dump = write(tmp_path / "d", {"a.npy": ONE, "meta.json": b'{"model": "m"}'})
    found = open_results(dump)
    assert found.foreign and "1 files were not read: meta.json" in found.notes
    found.results.save(tmp_path / "ours")
    (tmp_path / "ours" / "in.npz").write_bytes(npz({"p": FLOAT}))
    assert not open_results(tmp_path / "ours").foreign
    with pytest.raises(UsageError, match="need no --dump-rule"):
        open_results(tmp_path / "ours", parse_rule(["a=b"]))
    spec = RunnerSpec(kind="saved", results=str(dump), dump=parse_rule(["a=z"]))
    assert open_runner(spec, Loadable()).outputs == ["z"]


def test_no_file_of_a_dump_is_held_open_or_read_whole(tmp_path: Path) -> None:
    big = np.zeros((16, 1 << 20), np.uint8)
    files = {f"{number}/a.npz": npz({"p": FLOAT}, packed=number % 2 == 0) for number in range(20)}
    files |= {"20/a.pt": pt({"p": 0}), "21/a.npz": npz({"p": big})}
    folder, before = write(tmp_path / "d", files), len(list(Path("/proc/self/fd").iterdir()))
    iterations = read_dump(folder, DumpRule()).results[0]
    with zipfile.ZipFile(tmp_path / "z.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in list(files.items())[:20]:
            archive.writestr(name, data)
    packed = read_dump(tmp_path / "z.zip", DumpRule()).results[0]
    every = [*iterations, *packed]
    assert len(every) == 42 and all(dict(iteration.outputs) for iteration in every)
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1  # what was unpacked is in one file
    assert np.array_equal(every[0].outputs["p"], FLOAT) and np.array_equal(every[-1].outputs["p"], FLOAT)
    mapped = every[21].outputs["p"]
    while isinstance(mapped, np.ndarray) and mapped.base is not None:
        mapped = mapped.base
    assert isinstance(mapped, mmap.mmap | memoryview)
