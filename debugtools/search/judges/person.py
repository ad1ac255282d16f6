"""A person as a judge: the candidate lies on disk, the question waits, for days if need be."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from layerwise._tool.backends.errors import writing
from layerwise._tool.backends.filesystem.files import atomic_writer
from layerwise._tool.backends.filesystem.permissions import make_folder
from layerwise._tool.backends.text import shown
from layerwise._tool.debugtools.search.judges.protocol import (
    NOTHING,
    Artifact,
    Auto,
    Judge,
    Judgement,
    Undo,
    write_golden,
    write_inputs,
)
from layerwise._tool.debugtools.search.rows import VerdictQuestion
from layerwise._tool.debugtools.search.strategies.protocol import Verdict

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.context import JobContext

CHOICES = ["good", "bad", "skip", "undo", "auto"]  # auto: let the machine finish


class PersonJudge(Judge):
    """path: where the candidate's model goes, its inputs beside it (and the reference's outputs, where `golden` has
    them). machine: measures too, as a suggestion.
    """

    def __init__(
        self, context: "JobContext", path: Path, golden: Callable[[Artifact], dict[str, Any]] | None = None,
        machine: Judge | None = None, keep: bool = False,
    ) -> None:  # fmt: skip
        self._context, self._path, self._golden = context, path, golden
        self._machine, self._keep = machine, keep

    def judge(self, artifact: Artifact | None) -> Judgement:
        """Ask. Undo and Auto where that is the answer."""
        started = time.perf_counter()
        files = self._write(artifact) if artifact is not None else {}
        suggestion = self._machine.judge(artifact) if self._machine else None
        question = self._question(artifact, files, suggestion)
        try:
            value = self._answer(question)
        finally:
            if not self._keep:
                for path in files.values():
                    path.unlink(missing_ok=True)
        measured = suggestion.measured if suggestion else NOTHING
        return Judgement(Verdict(value), "person", time.perf_counter() - started, measured)

    def _answer(self, question: VerdictQuestion) -> str:
        while True:
            value = self._context.ask(question).get("answer")
            if value == "undo":
                raise Undo
            if value == "auto":
                raise Auto
            if value in list(Verdict):
                return str(value)
            self._context.warn(f"{shown(str(value), 40)!r} is no answer: good, bad, skip, undo or auto is one")

    def _write(self, artifact: Artifact) -> dict[str, Path]:
        with writing(shown(str(self._path))):
            make_folder(self._path.parent)
            artifact.write(self._path, atomic_writer)
            files = {"model": self._path}
            if artifact.gives:
                files["inputs"] = write_inputs(artifact, self._path)
            if self._golden:
                files["outputs"] = write_golden(self._golden(artifact), self._path)
        return files

    def _question(
        self, artifact: Artifact | None, files: dict[str, Path], suggestion: Judgement | None
    ) -> VerdictQuestion:
        what = f"'{self._path}'" if artifact is not None else "this iteration"
        sure = suggestion is not None and suggestion.verdict is not Verdict.SKIP
        return VerdictQuestion(
            f"Did {what} pass or fail?", CHOICES, suggestion.verdict if suggestion and sure else None,
            suggestion.measured if suggestion else NOTHING, {role: str(path) for role, path in files.items()},
            artifact.about if artifact else UNSET,
        )  # fmt: skip
