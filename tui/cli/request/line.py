"""The `layerwise run …` line that is equivalent to a CompareSpec: the app shows and yanks it, job cards print it."""

from layerwise._tool.backends.errors import UsageError
from layerwise._tool.backends.specs import RunnerSpec
from layerwise._tool.debugtools.compare.spec import CompareSpec
from layerwise._tool.tui.cli.options.option import line
from layerwise._tool.tui.cli.request.parser import COMPARED, parser
from layerwise._tool.tui.cli.request.runners import runner_words, trt_words

_FIRST = ("rename", "model_options", "marks", "observe", "feeds", "metrics")


def command_line(spec: CompareSpec) -> list[str]:
    """The argv (command name first, unquoted) whose `run` gives `spec` again."""
    flagged = trt_words(spec.runners)
    if flagged:
        words = _line(spec, flagged)
        if _runners_of(words) == spec.runners:
            return words
    return _line(spec, runner_words(spec.runners))


def _runners_of(words: list[str]) -> list[RunnerSpec] | None:
    """The runners that `run` makes of a line; None where it refuses it."""
    from layerwise._tool.tui.cli.request.to_spec import to_request

    try:
        return to_request(parser().parse_args(words[2:])).spec.runners
    except UsageError:
        return None


def _line(spec: CompareSpec, runners: list[str]) -> list[str]:
    model = spec.model
    first = [model] if model and not model.startswith("-") else []
    last = ["--", model] if model and model.startswith("-") else []
    return ["layerwise", "run", *first, *runners, *line(COMPARED, spec, _FIRST), *last]
