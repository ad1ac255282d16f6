"""Models that need more memory than available are opened or rejected with a message, using little memory."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import psutil
import pytest
from support.hostile_sizes import MOST, endless_functions, huge_inputs, long_vectors, lying_weights, peak_of

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.feeds.sources import make_feeds
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.model.protos import parse_model
from layerwise._tool.backends.reference.evaluate import tensor_infos
from layerwise._tool.backends.runner import Loadable, open_runner
from layerwise._tool.backends.specs import FeedSpec, RunnerSpec
from layerwise._tool.surgery.cut.sizes import estimates
from layerwise._tool.surgery.inspect.text import describe_model
from layerwise._tool.surgery.model.structure import Structure
from layerwise._tool.surgery.rewrite.inlining import inlined
from layerwise._tool.surgery.types.incremental import types_of
from layerwise._tool.surgery.types.infer import inferred_structure

Models = Callable[[int, int], Iterator[tuple[str, onnx.ModelProto]]]
SEED, COUNT = 11, 12


def infer(path: Path) -> None:
    """The index, `inspect model --shape-inference`."""
    with ModelFile(path) as file:
        _, warnings = inferred_structure(file.structure_bytes())
        assert all(map(str.isprintable, warnings))


def describe(path: Path) -> None:
    with ModelFile(path) as file:
        assert list(describe_model(file, ("layers", "attrs", "weights"), shape_inference=True))


def estimate(path: Path) -> None:
    """A comparison's plan."""
    with ModelFile(path) as file:
        estimates(file.structure(), {})


def types(path: Path) -> None:
    """The checks of an edit; precision."""
    with ModelFile(path) as file:
        structure = Structure.open(file)
        types_of(structure)
        inlined(structure)


def onnxruntime(path: Path) -> None:
    with open_runner(RunnerSpec(kind="onnxrt"), Loadable(path=path)) as runner:
        runner.infer(next(iter(make_feeds(FeedSpec(), runner.inputs, lambda _: None))))


def reference(path: Path) -> None:
    with open_runner(RunnerSpec(kind="reference"), Loadable(path=path)) as runner:
        runner.infer(next(iter(make_feeds(FeedSpec(), runner.inputs, lambda _: None))))


def inputs(path: Path) -> None:
    model = parse_model(path.read_bytes())
    with pytest.raises(LayerwiseError, match=r"needs [0-9.e+]+ .iB to make: the limit is"):
        next(iter(make_feeds(FeedSpec(), tensor_infos(model.graph.input), lambda _: None)))


def sentence(use: Callable[[Path], None], path: Path) -> None:
    try:
        use(path)
    except LayerwiseError as error:
        assert str(error).isprintable() and len(str(error)) < 2000, str(error)


@pytest.mark.parametrize(
    ("models", "uses"),
    [
        (long_vectors, [infer, describe, estimate, types, onnxruntime, infer]),
        (huge_inputs, [inputs]),
        (lying_weights, [infer, describe, types, onnxruntime, reference]),
        (endless_functions, [infer, types, onnxruntime, reference]),
    ],
    ids=["long vectors", "huge inputs", "lying weights", "endless functions"],
)
def test_a_small_model_takes_little_memory(
    models: Models, uses: list[Callable[[Path], None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAYERWISE_MEMORY", "8G")
    held = psutil.Process().memory_info().rss
    wrong = []
    for i, (name, model) in enumerate(models(SEED, COUNT)):
        path, use = tmp_path / f"{i}.onnx", uses[i % len(uses)]
        path.write_bytes(model.SerializeToString())
        code, peak = peak_of(lambda use=use, path=path: sentence(use, path))  # type: ignore[misc]
        if code != 0 or peak - held > MOST:
            wrong.append(f"{use.__name__}: {name}: ended with {code}, took {(peak - held) >> 20} MiB")
    assert not wrong, "\n".join(wrong)


def test_skipped_inference_is_reported() -> None:
    said = []
    for _, model in long_vectors(SEED, 8):
        found, warnings = inferred_structure(model.SerializeToString())
        assert onnx.ModelProto.FromString(found).graph.node == model.graph.node
        said += warnings
    assert said and all(re.search("not inferred: inferring shapes takes more than 256 MiB", text) for text in said)
