"""TensorFlow's runner: its name is there, and says how to get an ONNX model instead when it is activated."""

from typing import Any

from layerwise.backend.base import BaseRunner
from layerwise.backend.tf.util import refuse

__all__ = ["TfRunner"]


class TfRunner(BaseRunner):
    """Cannot be activated."""

    def __init__(self, sess: Any, timeline_dir: str | None = None, name: str | None = None) -> None:
        super().__init__(name=name, prefix="tf-runner")
        self.timeline_dir = timeline_dir

    def activate_impl(self) -> None:
        refuse("TfRunner")
