"""The ONNX reference evaluator as a runner."""

from layerwise.backend.floor import FloorRunner


class ReferenceRunner(FloorRunner):
    """Runs a model as the ONNX specification defines it; slow, and right."""

    kind = "reference"
