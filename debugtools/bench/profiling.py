"""Times the layers of each runner in separate runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.model.file import ModelFile
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.bench.exports import profile_text, write
from layerwise._tool.debugtools.bench.layers import Origins, layer_information, profile_rows, read_graph
from layerwise._tool.debugtools.bench.profile_child import profile
from layerwise._tool.debugtools.bench.rows import ProfileRow
from layerwise._tool.debugtools.bench.spec import BenchSpec

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext


class Profiling:
    """Writes the rows of the table profile, and the requested files, for the first runner that has layers."""

    def __init__(self, context: "JobContext", spec: BenchSpec, names: list[str]) -> None:
        self._context, self._spec, self._names = context, spec, names
        self._rows: list[ProfileRow] = []

    def run(self, batch: int | None) -> list[ProfileRow]:
        """Profile every runner at a batch size; return the rows. Warns of runners that cannot be profiled."""
        for number, name in enumerate(self._names):
            self._context.progress(number, len(self._names), "profiles", name)
            try:
                self._profile(number, name, batch)
            except LayerwiseError as error:
                self._context.warn(f"{shown(name, 120)}: {error}")
        return self._rows

    def _profile(self, number: int, name: str, batch: int | None) -> None:
        folder = self._context.artifacts / f"profile-{number}"
        found = profile(self._spec, number, batch, folder)
        executed, origins = read_graph(found.graph), Origins(self._model(number))
        rows = profile_rows(name, batch, found.layers, executed, origins)
        exports = self._spec.exports
        if not self._rows and exports.profile:
            write(exports.profile, profile_text(exports.profile, rows, len(found.layers[0].runs_ms)))
        info = found.information or (layer_information(executed, origins) if executed is not None else None)
        if not self._rows and info is not None:
            for path in filter(None, (exports.layers, str(self._context.artifacts / "layers.json"))):
                write(path, info)
        for row in rows:
            self._context.row("profile", row)
        self._rows += rows
        self._tidy(folder)

    def _model(self, number: int) -> Any:
        spec, options = self._spec, self._spec.model_options
        path = spec.runners[number].model or spec.model
        if Path(path).suffix.lower() != ".onnx" and spec.runners[number].kind == "trt":
            return None
        with ModelFile(path, options.external_data_dir, options.ignore_external_data) as file:
            return file.structure()

    def _tidy(self, folder: Path) -> None:
        """Remove the copy of the model's weights that was written with the graph."""
        for path in folder.glob("*.weights"):
            path.unlink()
