"""Rows of the layer error table taken elsewhere, as text and JSON, and one tensor read in full by a job of its own."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import to_builtins

from layerwise._tool.backends.errors import LayerwiseError
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.jobs.spec import JobSpec, load_spec
from layerwise._tool.backends.text import shown
from layerwise._tool.backends.wording import in_words
from layerwise._tool.debugtools.compare.rows import LayerRow
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.debugtools.compare.tensor_values import TensorValues
from layerwise._tool.tui.cli.request.line import command_line
from layerwise._tool.tui.controllers.yank import Copy, block_copy
from layerwise._tool.tui.presenters.course import svg_lines
from layerwise._tool.tui.presenters.error_detail import row_text
from layerwise._tool.tui.presenters.errors_page import head_lines, heading, row_line, table_columns
from layerwise._tool.tui.presenters.names import Names
from layerwise._tool.tui.presenters.text import UNICODE, plain
from layerwise._tool.tui.presenters.verdicts import word_of
from layerwise._tool.tui.state.errors_page import ErrorsState
from layerwise._tool.tui.state.shared import AppState

EXPORT_CELLS = 160


def export_rows(errors: ErrorsState, path: Path) -> int:
    """Write the rows shown, in their order: one JSON array for `.json`, a line each for `.csv`, a picture of the
    error's course for `.svg`, a table otherwise. Raises OSError.
    """
    forms = {".json": json_lines, ".csv": csv_lines, ".svg": picture_lines}
    lines = forms.get(path.suffix.lower(), text_lines)(errors)
    with atomic_writer(path) as stream:
        for line in lines:
            stream.write(line.encode("utf-8", "backslashreplace") + b"\n")
    return len(errors.order)


def text_lines(errors: ErrorsState) -> Iterator[str]:
    """The table as people read it."""
    table = errors.table
    shape, names = table_columns(table, EXPORT_CELLS, errors.sort), Names(UNICODE)
    titles = heading(shape, EXPORT_CELLS, "graph", False, UNICODE)
    for line in [*head_lines(errors, EXPORT_CELLS, UNICODE), titles]:
        yield plain(line).rstrip()
    for place in errors.order:
        yield plain(row_line(table, int(place), shape, names, UNICODE)).rstrip()


def csv_lines(errors: ErrorsState) -> Iterator[str]:
    """A line for the names of the fields and one for each row, as RFC 4180 has it but for the end of a line; lists are
    in JSON, what is not known is empty.
    """
    names = LayerRow.__struct_fields__
    yield ",".join(names)
    for place in errors.order:
        given = to_builtins(errors.table.row(int(place)))
        yield ",".join(_cell(given.get(name)) for name in names)


def _cell(value: object) -> str:
    text = "" if value is None else value if isinstance(value, str) else json.dumps(value)
    if text[:1] in ("=", "+", "@", "\t", "\r") or (isinstance(value, str) and text[:1] == "-"):
        text = f"'{text}"  # a spreadsheet would compute it
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text


def picture_lines(errors: ErrorsState) -> Iterator[str]:
    """The course of the error as SVG."""
    rows = [errors.table.row(int(place)) for place in errors.order]
    return svg_lines(plain(head_lines(errors, EXPORT_CELLS, UNICODE)[0]).strip(), rows)


def json_lines(errors: ErrorsState) -> Iterator[str]:
    """A JSON array, one row of the journal a line."""
    yield "["
    last = len(errors.order) - 1
    for line, place in enumerate(errors.order):
        yield json.dumps(to_builtins(errors.table.row(int(place)))) + ("," if line < last else "")
    yield "]"


def yank_targets(errors: ErrorsState, place: int) -> list[Copy]:
    """All that can be copied for a row."""
    targets = []
    if place >= 0:
        row = errors.table.row(place)
        targets = [
            Copy("t", "tensor", (row.tensor,)),
            Copy("n", "node", (row.node,)),
            block_copy("r", "row as text", row_text(row, errors.facts.runners, word_of(errors.table, place))),
            block_copy("j", "row as JSON", json.dumps(to_builtins(row))),
        ]
    if errors.spec is not None:
        targets.append(Copy("c", "command", tuple(command_line(errors.spec))))
    return targets


def _aligned(spec: CompareSpec | None, folder: Path) -> CompareSpec | None:
    """The comparison with the map that its job made, so that nobody has to find it out again."""
    found = sorted((folder / "artifacts").glob("alignment-*.json"))
    return msgspec.structs.replace(spec, align=str(found[0])) if spec is not None and len(found) == 1 else spec


class TensorController:
    """Asks for tensors of the comparison on view."""

    def __init__(self, app: AppState) -> None:
        self._app = app
        self._answers: dict[tuple[str, int], TensorValues] = {}

    async def values(self, place: int) -> TensorValues:
        """What `tensor_view` says of a row of the table.

        Raises LayerwiseError with the reason when the job fails, or its result is none.
        """
        key = (self._app.errors.job, place)
        if key not in self._answers:
            self._answers[key] = await self._run(place)
        return self._answers[key]

    async def _run(self, place: int) -> TensorValues:
        client = self._app.client
        view = await client.wait(await client.submit(self.job(place)))
        if view.result is None:
            card = view.card or {}
            raise LayerwiseError(f"job {view.id} {view.state}: {card.get('summary', 'no result')}")
        try:
            return msgspec.convert(view.result, TensorValues)
        except msgspec.ValidationError as error:
            raise LayerwiseError(f"job {view.id}: {in_words(error)}") from error

    def job(self, place: int) -> JobSpec:
        """The job that reads one tensor of both sides."""
        errors = self._app.errors
        row = errors.table.row(place)
        keys = ("tensor", "iteration", "mode", "atol", "rtol", "pair")
        folder = self._app.workspace.folder(errors.job)
        params = {
            "compare": msgspec.to_builtins(_aligned(errors.spec, folder)),
            **{key: getattr(row, key) for key in keys},
        }
        title = f"values of {shown(row.tensor, 120)}"
        compared = load_spec(folder)
        return JobSpec(
            action="tensor_view", params=params, title=title, gpus=compared.gpus, cwd=compared.cwd, source="tui"
        )  # fmt: skip
