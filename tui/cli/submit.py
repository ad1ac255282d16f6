"""Hands a job over: supervised by this process with its events as they come, or detached."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from layerwise._tool.backends.filesystem.places import current_folder
from layerwise._tool.backends.jobs.journal.schema import PRINTED, Event
from layerwise._tool.backends.log import CRITICAL, ERROR, FINISH, INFO, LEVELS, Log
from layerwise._tool.backends.shell import TITLE, shell_line
from layerwise._tool.backends.text import shown, shown_lines
from layerwise._tool.backends.wording import event_words

if TYPE_CHECKING:
    from layerwise._tool.backends.jobs.journal.view import JobView
    from layerwise._tool.backends.jobs.spec import JobSpec

Listener = Callable[[Event], None]


def job_spec(
    action: str,
    params: dict[str, Any],
    command: list[str],
    timeout: float | None = None,
    gpus: int = 0,
    title: Sequence[str] = (),
) -> "JobSpec":
    """A job of the command line, run where the user is. title: words; those of the command where it has no other."""
    from layerwise._tool.backends.jobs.spec import JobSpec

    return JobSpec(
        action=action,
        params=params,
        title=shell_line(title or command[1:], TITLE),
        command=command,
        cwd=str(current_folder()),
        timeout=timeout,
        gpus=gpus,
    )


def job_words(args: Namespace) -> list[str]:
    """The job options of a command line, for one that is made from what the job does."""
    timeout = ["--timeout", args.timeout] if args.timeout else []
    return timeout if args.gpus is None else [*timeout, "--gpus", str(args.gpus)]


def run_here(spec: "JobSpec", listen: Listener, log: Log) -> int:
    """Run the job to its end under this process; the exit code. `listen` gets every event, crashes are told."""
    from layerwise._tool.backends.jobs.inline import run_inline
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.debugtools import ACTIONS
    from layerwise._tool.tui.cli.ahead import take_worker

    def heard(event: Event) -> None:
        if event.get("type") == "log" and event.get("level") == PRINTED and not log.to_stderr:
            log.continued(str(event.get("text")))
        else:
            listen(event)

    view = run_inline(spec, heard, Workspace(), ACTIONS, take_worker())
    if view.card:
        log.say(CRITICAL, card_text(view.card, view.id))
    elif view.state == "cancelled":
        log.warning(f"Job {view.id} is cancelled. Go on where it stopped with: layerwise jobs retry {view.id}")
    return exit_code(view)


def say_message(event: Event, log: Log, source: str = "") -> None:
    """Print the event if it is a message or a warning."""
    kind = event.get("type")
    if kind in ("log", "warning"):
        log.say(LEVELS.get(str(event.get("level", kind)).upper(), INFO), shown_lines(event.get("text")), source)


def concluding(report: Listener, log: Log, action: str) -> Listener:
    """The report, and below it the last sentence of the result: what was found, how sure that is, what to do next."""
    source = "comparator" if action == "compare" else "tools"

    def listen(event: Event) -> None:
        report(event)
        data = event.get("data") if event.get("type") == "result" else None
        if isinstance(data, dict) and data.get("conclusion"):
            say_conclusion(str(data["conclusion"]), log, passed=data.get("passed") is not False, source=source)

    return listen


def say_conclusion(text: str, log: Log, *, passed: bool, source: str = "tools") -> None:
    """Print a last sentence. source: whose message it is, for --verbosity."""
    log.say(INFO if passed else ERROR, f"found        {shown(text, 2000)}", source)


def run_detached(spec: "JobSpec", log: Log, *, as_json: bool = False) -> int:
    """Give the job to a supervisor of its own and say how to find it again."""
    job = submit(spec)
    log.say(FINISH, f"Job {job} started. Follow it with: layerwise attach {job}")
    if as_json:
        from layerwise._tool.tui.cli.json_output import print_json

        print_json({"job": job}, "detached")
    return 0


def submit(spec: "JobSpec") -> int:
    """Give the job to a supervisor of its own; the job's number."""
    import asyncio

    from layerwise._tool.backends.jobs.client import JobClient
    from layerwise._tool.backends.jobs.workspace.store import Workspace
    from layerwise._tool.debugtools import ACTIONS

    return asyncio.run(JobClient(Workspace(), ACTIONS).submit(spec))


def exit_code(view: "JobView") -> int:
    """0 passed, 1 did not, 2 wrong usage, 130 interrupted."""
    if view.state == "done":
        return 1 if (view.result or {}).get("passed") is False else 0
    if view.state == "cancelled":
        return 130
    return 2 if (view.card or {}).get("exit_code") == 2 else 1


def card_text(card: dict[str, Any], job: object) -> str:
    """A crash card as plain text; a user's error is its message alone."""
    summary = shown_lines(card.get("summary", "failed"), 4000)
    if card.get("kind") == "error":
        return summary
    text = [f"job {job}: {summary}"]
    if card.get("detail"):
        text += shown_lines(card["detail"], 4000).splitlines()[-20:]
    if card.get("last_event"):
        text.append(f"last event: {event_words(card['last_event'])}")
    if card.get("command"):
        command = card["command"]
        text.append(f"reproduce:  {command if isinstance(command, str) else shell_line(command)}")
    return "\n".join([*text, f"log:        layerwise jobs logs {job}"])
