"""`--json`: one strict JSON document; what JSON cannot say (inf, nan) is written as a string.

Its first fields say which schema of docs/schemas/ it has, and of which command line it is.
"""

import json
import math
import sys
from typing import Any

from layerwise._tool.backends.jobs.journal.schema import Event

VERSION = 1  # of all schemas: it grows when a field goes away or changes its meaning


def strict(value: Any) -> Any:
    """`value` with every float that JSON lacks as "inf", "-inf" or "nan"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return value


def ascii_json(value: Any) -> str:
    """`value` as JSON without a character that a terminal obeys."""
    return json.dumps(value, indent=2, allow_nan=False).replace("\x7f", "\\u007f")


class Current:
    """The command that runs: its words and its whole line; whether its document is printed."""

    words = ""
    line = ""
    printed = False

    @classmethod
    def begin(cls, words: str, line: str) -> None:
        """A command begins."""
        cls.words, cls.line, cls.printed = words, line, False


def schema_of(words: str) -> str:
    """The name of the schema of a command's document."""
    return f"layerwise/{words.replace(' ', '-')}/{VERSION}"


def print_json(value: Any, kind: str = "") -> None:
    """Print `value` as strict JSON, ASCII only so that no name reaches a terminal raw.

    kind: of the document; the command's own if none is given. Objects, or those in a list, are told their schema, and
    an object its command and exit code 0 where it does not say otherwise.
    """
    Current.printed = True
    schema = schema_of(kind or Current.words)
    if isinstance(value, dict):
        head = {"schema": schema} if value.keys() >= {"job", "state"} else _head(schema)
        value = {**head, **value, "schema": schema}
    elif isinstance(value, list):
        value = [{**item, "schema": schema} if isinstance(item, dict) else item for item in value]
    sys.stdout.write(ascii_json(strict(value)) + "\n")


def _head(schema: str) -> dict[str, Any]:
    return {"schema": schema, "command": Current.line, "exit_code": 0}


class Collector:
    """Keeps a job's events for one JSON document."""

    def __init__(self) -> None:
        self.tables: dict[str, list[dict[str, Any]]] = {}
        self.result: dict[str, Any] | None = None
        self.card: dict[str, Any] | None = None
        self.messages: list[dict[str, Any]] = []

    def event(self, event: Event) -> None:
        kind = event.get("type")
        if kind == "row":
            self.tables.setdefault(str(event.get("table")), []).append(event["row"])
        elif kind == "dropped":
            self.tables = {table: rows for table, rows in self.tables.items() if table in event["kept"]}
        elif kind == "result":
            self.result = event["data"]
        elif kind == "card":
            self.card = {key: value for key, value in event.items() if key not in ("v", "n", "t", "type")}
        elif kind in ("warning", "log"):
            self.messages.append({"level": event.get("level", kind), "text": event.get("text")})

    def document(self, command: str, code: int) -> dict[str, Any]:
        """Everything seen: tables, result, messages, and the card of a job that failed."""
        return {
            "command": command,
            "exit_code": code,
            "passed": code == 0,
            "result": self.result,
            "rows": self.tables.get("layers", []),
            "runs": self.tables.get("runs", []),
            "inputs": self.tables.get("inputs", []),
            **({"plan": self.tables["plan"]} if "plan" in self.tables else {}),
            **({"quantised_tensors": self.tables["quantised"]} if "quantised" in self.tables else {}),
            "messages": self.messages,
            "error": self.card,
        }
