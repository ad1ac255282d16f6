"""Writes the files of `--report`, for any command."""

import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.errors import LayerwiseError, UsageError
from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.log import FINISH, Log
from layerwise._tool.backends.text import shown

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.spec import JobSpec
    from layerwise._tool.debugtools.report.collected import Collected
    from layerwise._tool.debugtools.report.structure import Part, Report, Section


class Reporter:
    """The reports that a command was asked for.

    paths: of the files. name: of the command, in words; command: that repeats it. `written` says whether they are.
    """

    def __init__(self, paths: Sequence[str], name: str, command: str, log: Log) -> None:
        """UsageError for a name that is none of a report, or a folder that is not there."""
        from layerwise._tool.debugtools.report.write import format_of

        self.paths, self.written = list(paths), False
        self._name, self._command, self._log = name, command, log
        self._root = current_folder()
        for path in self.paths:
            format_of(path)
            folder = Path(path).parent
            if not folder.is_dir() or not os.access(folder, os.W_OK):
                raise UsageError(f"--report {shown(path, 300)}: its folder is not there, or cannot be written to")

    def collected(self) -> "Collected | None":
        """What takes the events of the job that is told of; None if no report is asked for."""
        if not self.paths:
            return None
        from layerwise._tool.debugtools.report.collected import Collected

        return Collected()

    def job(self, spec: "JobSpec", collected: "Collected | None", code: int, named: str | None = None) -> int:
        """Report on a job; the exit code. named: what its model is called, where that is not in its parameters."""
        if collected is None:
            return code
        from msgspec.structs import replace

        from layerwise._tool.debugtools.report.parts import job_part, model_path

        name = self._named(named or model_path(spec.params))
        part = job_part(spec.action, spec.params, collected, name=name, command=self._command, exit_code=code)
        return self.part(replace(part, model=named or part.model), code)

    def folder(self, number: int, code: int) -> int:
        """Report on a job of this workspace that has ended, or that goes on; the exit code."""
        if not self.paths:
            return code
        from layerwise._tool.backends.jobs.folder import raw_spec
        from layerwise._tool.backends.jobs.workspace.store import Workspace

        folder = Workspace().folder(number)
        if raw_spec(folder).get("action") == "matrix":
            from layerwise._tool.debugtools.matrix.reported import matrix_report

            return self.whole(matrix_report(folder, code), code)
        from layerwise._tool.debugtools.report.parts import folder_part

        return self.part(folder_part(folder), code)

    def sections(
        self, action: str, sections: "Sequence[Section]", code: int, *, conclusion: str = "", model: str = "",
        facts: Mapping[str, str] | None = None,
    ) -> int:  # fmt: skip
        """Report on a command that is no job; the exit code."""
        if not self.paths:
            return code
        from layerwise._tool.debugtools.report.structure import Part, accounted

        part = Part(name=self._named(model), action=action, command=self._command, model=model, exit_code=code,
                    conclusion=conclusion, facts=dict(facts or {}), sections=list(sections))  # fmt: skip
        return self.part(accounted(part), code)

    def failed(self, error: str, code: int) -> int:
        """Report that the command could not be carried out; the exit code."""
        if not self.paths or self.written:
            return code
        from layerwise._tool.debugtools.report.parts import failed_part

        return self.part(failed_part(self._name, error, exit_code=code, command=self._command), code)

    def part(self, part: "Part", code: int) -> int:
        """Write the reports of one part; the exit code, 1 where one cannot be written and all else went well."""
        from layerwise._tool.debugtools.report.structure import Report

        return self.whole(Report(part.name, [part]), code)

    def whole(self, report: "Report", code: int) -> int:
        """Write the reports of all parts; the exit code as of `part`."""
        from layerwise._tool.debugtools.report.write import write_report

        self.written = True
        for path in self.paths:
            try:
                write_report(report, path, self._root)
            except (LayerwiseError, OSError) as error:
                self._log.fatal(f"--report {shown(path, 300)}: {shown(str(error), 500)}")
                code = code or 1
            else:
                self._log.say(FINISH, f"report       {shown(path, 1000)}", source="tools")
        return code

    def _named(self, model: str) -> str:
        return f"{self._name} {Path(model).name}" if model else self._name


def reporter_of(args: Namespace) -> "Reporter | None":
    """The reports that a command's options ask for; None where it has no such option, or none is asked for."""
    found: Any = getattr(args, "reporter", None)
    return found if isinstance(found, Reporter) and found.paths else None


def make_reporter(args: Namespace, words: str, log: Log) -> "Reporter | None":
    """The same, made from the options. UsageError where they do not fit."""
    paths = getattr(args, "report_files", None)
    if not paths:
        return None
    if getattr(args, "detach", False):
        text = "--report with --detach: the job has not ended then; `layerwise attach JOB --report FILE` writes it"
        raise UsageError(text)
    return Reporter(paths, f"layerwise {words}", args.command, log)
