"""The model that was found beside the reference, tensor by tensor."""

import msgspec

from layerwise._tool.debugtools.compare.run import run_comparison
from layerwise._tool.debugtools.compare.sides.setup import Setup
from layerwise._tool.debugtools.compare.spec import MarkSpec
from layerwise._tool.debugtools.search.precision.ground import Ground


def layer_table(ground: Ground, kept: tuple[int, ...]) -> None:
    """Compare every tensor of the choice that keeps `kept` with the reference's: rows of table `layers`, and the file
    for all of them if one was asked for. LayerwiseError as a comparison raises it.
    """
    path = ground.context.artifacts / "observed.onnx"
    ground.choices.write_run(kept, path)
    _, *others = ground.compare.runners
    model = ground.suspect.model.path
    others = [
        other if other.kind == "saved" else msgspec.structs.replace(other, model=other.model or model)
        for other in others
    ]
    spec = msgspec.structs.replace(
        ground.compare,
        runners=[msgspec.structs.replace(ground.way.file_spec, model=str(path)), *others],
        marks=MarkSpec(everything=True),
        tolerance=ground.machine.tolerance,
        save_outputs=ground.spec.save_layer_outputs,
    )
    run_comparison(ground.context, Setup(spec))
